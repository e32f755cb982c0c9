// DurableObjectStore in a Worker, over both classes: the suite, races, restarts, numbers of shards, objects that fail.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { MemoryStore } from "tidegate";
import { DurableObjectStore } from "tidegate/cloudflare";
import { makeDisk } from "../worker/served.mjs";
import { admitted, many, serve } from "./served.mjs";

const limit = { limit: 50, window: "1h" };

for (const namespace of ["JS", "RUST"]) {
  describe(`over the class of ${namespace}`, () => {
    let worker;
    const ask = (task, body) => worker.ask(namespace, task, body);

    before(async () => {
      worker = await serve();
    });

    after(() => worker.stop());

    test("the suite", async () => {
      const { cases, failed } = await ask("suite");
      assert.deepEqual(failed, []);
      assert.ok(cases > 70, `${cases} cases`);
    });

    test("200 requests at once for one key: exactly the limit is admitted", async () => {
      const decisions = await many(200, () => ask("consume", { key: "hot", limit }));
      assert.equal(admitted(decisions), 50);
    });

    test("200 requests at once for one id: its work is done once", async () => {
      const texts = await many(200, (_, index) => ask("once", { id: "id", text: `by ${index}` }));
      assert.equal(new Set(texts).size, 1);
    });

    test("a tick is one request to each object that is concerned", async () => {
      const keys = Array.from({ length: 300 }, (_, index) => `key ${index % 100}`);
      await ask("consume", { key: "warm", limit });
      await ask("asked");
      const decisions = await ask("keys", { keys, limit: { limit: 2, window: "1h" } });
      assert.equal(admitted(decisions), 200);
      assert.ok(
        decisions.slice(0, 200).every(({ allowed }) => allowed),
        "in order per key",
      );
      const paths = await ask("asked");
      assert.ok(paths.length > 40 && paths.length <= 64, `${paths.length} requests`);
      assert.ok(paths.every((path) => path === "/"));
    });

    test("TieredStore over it: lease is exact, and most decisions ask nobody", async () => {
      const window = { algorithm: "fixed-window", limit: 400, window: "1h" };
      const { admitted, local, remaining } = await ask("tiered", {
        mode: "lease",
        limit: window,
        calls: 300,
      });
      assert.deepEqual([admitted, remaining], [300, 100]);
      assert.ok(local > 250, `${local} local`);
      const cached = await ask("tiered", { mode: "deny-cache", limit: window, calls: 150 });
      assert.deepEqual([cached.admitted, cached.remaining], [100, 0]);
      assert.ok(cached.local >= 45, `${cached.local} local`);
    });

    test("objects that throw are store errors with their cause, those that hang are timeouts", async () => {
      const consume = (more) => ask("consume", { key: "faulty", limit, ...more });
      assert.equal((await consume()).allowed, true);
      await ask("fault", { fault: "throws" });
      const { code, message, cause } = await consume();
      assert.deepEqual([code, cause], ["store", "the object is overloaded"]);
      assert.match(message, /the object was not reached/);
      assert.equal((await consume({ onStoreError: "allow" })).reason, "store-error");
      await ask("fault", { fault: "hangs" });
      assert.equal((await consume({ timeout: 200 })).code, "timeout");
      await ask("fault");
      assert.equal((await consume()).remaining, 48);
    });
  });
}

describe("numbers of shards", () => {
  const consume = (worker, namespace, shards, key = "k") =>
    worker.ask(namespace, "consume", {
      options: shards && { shards },
      key,
      limit: { limit: 1, window: "1h" },
    });
  const refused = ({ code, message }, has, wants) => {
    assert.equal(code, "store");
    assert.ok(message.includes(`has ${has} shards, but the option "shards" is ${wants}`), message);
  };

  test("without a setting the first number is the deployment's, for ever", async () => {
    const disk = makeDisk();
    for (const first of [true, false]) {
      const worker = await serve({ disk });
      try {
        assert.equal((await consume(worker, "JS", 8)).allowed, first);
        refused(await consume(worker, "JS", 16), 8, 16);
        refused(await consume(worker, "JS"), 8, 64);
        const paths = await worker.ask("JS", "asked");
        assert.deepEqual(paths.sort(), ["/", "/shards", "/shards", "/shards"]);
        assert.equal((await consume(worker, "JS", 8, "other")).allowed, first);
        assert.deepEqual(await worker.ask("JS", "asked"), ["/"], "it is asked about once");
      } finally {
        await worker.stop();
      }
    }
    disk.remove();
  });

  test("many who begin at once with two numbers: one number wins", async () => {
    const worker = await serve();
    try {
      const keys = Array.from({ length: 40 }, (_, index) => index);
      const answers = await Promise.all(
        keys.map((key) => consume(worker, "JS", key % 2 ? 8 : 16, `key ${key}`)),
      );
      const sides = [0, 1].map((side) => answers.filter((_, key) => key % 2 === side));
      const won = sides.map((side) => admitted(side));
      assert.deepEqual(won.sort(), [0, 20]);
    } finally {
      await worker.stop();
    }
  });

  test("the setting decides for both classes; the Rust class has 64 without one", async () => {
    const set = await serve({ env: { TIDEGATE_SHARDS: "2" } });
    const plain = await serve();
    try {
      for (const namespace of ["JS", "RUST"]) {
        refused(await consume(set, namespace), 2, 64);
        assert.equal((await consume(set, namespace, 2)).allowed, true);
        const body = "1;64\ntg:l:k\tU;";
        const { status, text } = await set.ask(namespace, "send", {
          name: "64/1",
          path: "/",
          body,
        });
        assert.deepEqual([status, text], [409, "this deployment has 2 shards"]);
      }
      refused(await consume(plain, "RUST", 8), 64, 8);
      assert.equal((await consume(plain, "RUST")).allowed, true);
    } finally {
      await set.stop();
      await plain.stop();
    }
  });

  test("a question that fails is a store error, and is asked again", async () => {
    const worker = await serve({ env: { TIDEGATE_SHARDS: "many" } });
    try {
      const { code, message } = await consume(worker, "JS");
      assert.equal(code, "store");
      assert.match(message, /TIDEGATE_SHARDS must be a whole number from 1 to 1024/);
    } finally {
      await worker.stop();
    }
    const well = await serve();
    try {
      await well.ask("JS", "fault", { fault: "throws" });
      assert.equal((await consume(well, "JS")).code, "store");
      await well.ask("JS", "fault");
      assert.equal((await consume(well, "JS")).allowed, true);
    } finally {
      await well.stop();
    }
  });
});

test("a restart in the middle of a race loses nothing that was answered", async () => {
  const disk = makeDisk();
  const consume = (worker) => worker.ask("JS", "consume", { key: "restart", limit });
  const first = await serve({ disk });
  const answers = [];
  const asking = many(100, async () => answers.push(await consume(first))).catch(() => {});
  while (answers.length < 20) await pause(5);
  await first.stop();
  await asking;
  const told = admitted(answers);
  assert.ok(told >= 20);
  const second = await serve({ disk });
  try {
    const more = admitted(await many(100, () => consume(second)));
    assert.ok(told + more <= 50, `${told} and ${more}`);
  } finally {
    await second.stop();
    disk.remove();
  }
});

test("what is no namespace, and numbers that make no sense, are refused at once", () => {
  const namespace = { idFromName: (name) => name, get: () => ({}) };
  const refuses = (name, ...args) =>
    assert.throws(() => new DurableObjectStore(...args), {
      code: "bad_policy",
      message: new RegExp(name),
    });
  for (const wrong of [undefined, null, {}, "TIDEGATE_SHARD", new MemoryStore()]) {
    refuses("namespace must be", wrong);
  }
  for (const shards of [0, 1_025, 1.5, "8", Number.NaN, null]) {
    refuses('option "shards"', namespace, { shards });
  }
  refuses('option "prefix"', namespace, { prefix: "" });
  refuses("unknown option", namespace, { shard: 8 });
  const { capabilities } = new DurableObjectStore(namespace, { shards: 1_024, prefix: "app" });
  assert.deepEqual(capabilities, {
    atomicity: "exact",
    clock: "store",
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1,
  });
});
