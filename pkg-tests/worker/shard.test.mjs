// The Durable Objects: exact under races, over restarts and evictions, and when one is lost; what they cost, and
// that what is over goes away.

import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../js/tools/shell.mjs";
import { makeDisk, serve, TOKENS } from "./served.mjs";

const limit = { limit: 50, window: "1h" };
const admitted = (answers) => answers.filter(({ allowed }) => allowed).length;
const many = (count, ask) => Promise.all(Array.from({ length: count }, ask));

describe("one Worker", () => {
  let worker;

  before(async () => {
    worker = await serve();
  });

  after(() => worker.stop());

  test("200 consumers of one key at once: exactly the limit is admitted", async () => {
    const answers = await many(200, () => worker.ok("consume", { key: "hot", limit }));
    assert.equal(admitted(answers), 50);
    const left = answers.filter(({ allowed }) => allowed).map(({ remaining }) => remaining);
    assert.deepEqual(
      left.sort((a, b) => b - a),
      Array.from({ length: 50 }, (_, index) => 49 - index),
    );
  });

  test("200 callers of first, claim and observe at once: one winner", async () => {
    const firsts = await many(200, () => worker.ok("first", { id: "f", ttl: "1h" }));
    assert.equal(firsts.filter(({ first }) => first).length, 1);
    const claims = await many(200, () => worker.ok("claim", { id: "c", ttl: "1h" }));
    assert.equal(claims.filter(({ status }) => status === "fresh").length, 1);
    const seen = await many(200, () =>
      worker.ok("observe", { identity: "i", threshold: 100, window: "365d" }),
    );
    assert.equal(seen.filter(({ fired }) => fired).length, 1);
    assert.equal(Math.max(...seen.map(({ count }) => count)), 200);
  });

  test("batches that race for one key: exactly the limit, in the order of each", async () => {
    const calls = Array.from({ length: 40 }, () => ({ path: "consume", key: "batched", limit }));
    const answers = await many(5, () => worker.ok("batch", { calls }));
    const decisions = answers.flatMap(({ results }) => results.map(({ body }) => body));
    assert.equal(admitted(decisions), 50);
    for (const { results } of answers) {
      const allowed = results.map(({ body }) => body.allowed);
      assert.ok(!allowed.includes(false) || !allowed.slice(allowed.indexOf(false)).includes(true));
    }
  });
});

describe("what is kept on disk", () => {
  let disk;

  before(() => {
    disk = makeDisk();
  });

  after(() => disk.remove());

  test("a restart in the middle of a race loses nothing that was answered", async () => {
    const first = await serve({ disk });
    const answers = [];
    const asking = many(100, async () => {
      answers.push(await first.ok("consume", { key: "restart", limit }));
    }).catch(() => {});
    while (answers.length < 20) await sleep(5);
    await first.stop();
    await asking;
    const told = admitted(answers);
    assert.ok(told >= 20);
    const second = await serve({ disk });
    try {
      const more = admitted(await many(100, () => second.ok("consume", { key: "restart", limit })));
      // What was charged and not answered any more is charged all the same.
      assert.ok(told + more <= 50, `${told} and ${more}`);
      assert.equal((await second.ok("peek", { key: "restart", limit })).remaining, 0);
    } finally {
      await second.stop();
    }
  });

  test("a shard that is lost is empty, and the others are not", async () => {
    const one = { limit: 1, window: "1h" };
    const keys = Array.from({ length: 64 }, (_, index) => `key ${index}`);
    const consume = async (worker) => {
      const { results } = await worker.ok("batch", {
        calls: keys.map((key) => ({ path: "consume", key, limit: one })),
      });
      return results.map(({ status, body }) => (status === 200 ? body.allowed : status));
    };
    const first = await serve({ disk });
    assert.ok((await consume(first)).every((allowed) => allowed === true));
    await first.stop();
    const objects = join(disk.path, "tidegate");
    const [lost] = readdirSync(objects).filter((file) => file.endsWith(".sqlite"));
    for (const file of readdirSync(objects).filter((file) => file.startsWith(lost.slice(0, -7)))) {
      rmSync(join(objects, file));
    }
    const second = await serve({ disk });
    try {
      const again = await consume(second);
      const anew = again.filter((allowed) => allowed === true).length;
      assert.ok(anew > 0 && anew < 16, `${anew} of 64 keys begin anew`);
      assert.equal(again.filter((allowed) => allowed === false).length, 64 - anew);
    } finally {
      await second.stop();
    }
  });

  test("another number of shards is other objects", async () => {
    const worker = await serve({ disk, env: { TIDEGATE_TOKEN: TOKENS, TIDEGATE_SHARDS: 2 } });
    try {
      assert.equal((await worker.ok("peek", { key: "restart", limit })).remaining, 50);
    } finally {
      await worker.stop();
    }
    for (const TIDEGATE_SHARDS of ["0", "1025", "many", "1.5", 0, 1.5]) {
      const odd = await serve({ env: { TIDEGATE_TOKEN: TOKENS, TIDEGATE_SHARDS } });
      try {
        const { status, body } = await odd.call("has", { id: "x" });
        assert.deepEqual([status, body.error.code], [503, "not_configured"]);
      } finally {
        await odd.stop();
      }
    }
  });
});

/** The Worker, and a way to speak to its objects directly and to have them sweep. */
const open = `
  import { setClock } from "./clock.mjs";
  import Worker, { TidegateShard as Shard } from ${JSON.stringify(join(root, "target/worker/index.js"))};

  export class TidegateShard {
    constructor(state, env) {
      const { storage } = state;
      const cursors = [];
      const sql = {
        get databaseSize() {
          return storage.sql.databaseSize;
        },
        exec(...args) {
          const cursor = storage.sql.exec(...args);
          cursors.push(cursor);
          return cursor;
        },
      };
      const watched = {
        sql,
        transactionSync: (body) => storage.transactionSync(body),
        getAlarm: () => storage.getAlarm(),
        setAlarm: (at) => storage.setAlarm(at),
        deleteAll: () => storage.deleteAll(),
      };
      const shard = new Shard({ storage: watched }, env);
      const sum = (name) => cursors.reduce((sum, cursor) => sum + cursor[name], 0);
      const told = () => ({
        rows: storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'records'").toArray().length === 0
          ? null
          : storage.sql.exec("SELECT key, record, over_at FROM records ORDER BY key").toArray(),
        kept: this.kept,
      });
      this.kept = Math.random();
      this.alarm = () => shard.alarm();
      this.fetch = async (request) => {
        const { pathname } = new URL(request.url);
        if (pathname === "/told") return Response.json({ ...told(), alarm: await storage.getAlarm() });
        if (pathname === "/rows") {
          const rows = { read: sum("rowsRead"), written: sum("rowsWritten") };
          cursors.length = 0;
          return Response.json(rows);
        }
        if (pathname === "/alarm") return Response.json(await shard.alarm() ?? null);
        return shard.fetch(request);
      };
    }
  }

  export default {
    fetch(request, env, context) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/test/clock") {
        setClock(Number(searchParams.get("at")));
        return new Response();
      }
      if (!pathname.startsWith("/test/")) return new Worker(context, env).fetch(request);
      const stub = env.TIDEGATE_SHARD.get(env.TIDEGATE_SHARD.idFromName(searchParams.get("name")));
      return stub.fetch(new Request("https://shard/" + pathname.slice(6), request));
    },
  };
`;

describe("an object itself", () => {
  let worker;
  const name = "1/0";
  const send = async (path, body) => {
    const response = await fetch(`${worker.url}/test/${path}?name=${name}`, {
      method: "POST",
      body,
    });
    return { status: response.status, text: await response.text() };
  };
  const told = async () => JSON.parse((await send("told")).text);
  // Far ahead, so that alarms are only ever run by a test.
  let now = Date.now() + 1e10;
  const wait = (ms) => {
    now += ms;
    return worker.setClock(now);
  };

  before(async () => {
    worker = await serve({ source: open, env: { TIDEGATE_SHARDS: "1" } });
    await wait(0);
  });

  after(() => worker.stop());

  test("the wire: a batch in, packed replies out", async () => {
    const { status, text } = await send(
      "",
      "1;1\ntg:l:a\tC;1;default=b,1,1000,10\ntg:l:a\tC;20;default=b,1,1000,10\ntg:m:a\tF;60000",
    );
    assert.deepEqual([status, text], [200, "9,1000;9,1000,0,2;1"]);
    assert.deepEqual((await told()).rows, [
      { key: "tg:l:a", record: `1l|default=b,1,1000,10,1000,${now}.`, over_at: now + 1000 },
      { key: "tg:m:a", record: `1d||${now + 60_000}||.`, over_at: now + 60_000 },
    ]);
  });

  test("what is no batch, and a caller who counts on other shards, change nothing", async () => {
    const before = await told();
    assert.equal((await send("", "1;1\ntg:l:a\tC;1")).status, 400);
    assert.equal((await send("", "")).status, 400);
    assert.equal((await send("", "1;2\ntg:l:a\tC;1;default=b,1,1000,10")).status, 409);
    assert.deepEqual((await told()).rows, before.rows);
  });

  test("a decision reads a row and writes one; a denied one writes none", async () => {
    const rows = async () => JSON.parse((await send("rows")).text);
    const consume = (cost) => send("", `1;1\ntg:l:rows\tC;${cost};default=b,1,1000,10`);
    await rows();
    await consume(1);
    assert.deepEqual(await rows(), { read: 0, written: 1 }, "a new key");
    await consume(1);
    assert.deepEqual(await rows(), { read: 1, written: 1 }, "a known key");
    await consume(9);
    assert.deepEqual(await rows(), { read: 1, written: 0 }, "denied");
  });

  test("what is over is swept by an alarm, and an object with nothing left keeps nothing", async () => {
    const { alarm } = await told();
    assert.equal(alarm, now + 3_600_000);
    await wait(30_000);
    await send("alarm");
    assert.deepEqual(
      (await told()).rows.map(({ key }) => key),
      ["tg:m:a"],
    );
    assert.equal((await told()).alarm, now + 3_600_000, "an hour at least");
    await wait(30_000);
    await send("alarm");
    assert.deepEqual(await told().then(({ rows, alarm }) => ({ rows, alarm })), {
      rows: null,
      alarm: null,
    });
    assert.equal((await send("", "1;1\ntg:m:a\tF;60000")).text, "1", "and works again");
    assert.equal((await told()).alarm, now + 3_600_000);
  });

  test("idle objects leave memory, and find everything when they are back", async () => {
    await send("", "1;1\ntg:m:kept\tF;31536000000");
    const { kept } = await told();
    // workerd evicts what nobody has asked for ten seconds.
    await sleep(12_000);
    assert.notEqual((await told()).kept, kept, "it was evicted");
    assert.equal((await send("", "1;1\ntg:m:kept\tF;31536000000")).text, "2");
  });
});
