// RedisRestStore over HTTP, in front of a real server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { BurstDetector, Deduplicator, Limiter } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisRestStore } from "tidegate/redis-rest";
import { freePort } from "../redis/servers.mjs";
import { TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

let served;
let prefixes = 0;

before(async () => {
  served = await serve();
});

after(() => served.stop());

const made = (options) =>
  new RedisRestStore({
    url: served.proxy.url,
    token: TOKEN,
    prefix: `p${prefixes++}`,
    ...options,
  });

/** A fetch as a host may have it that shares it with another client. */
const asksForBase64 = (url, { headers, ...request }) =>
  fetch(url, { ...request, headers: { ...headers, "Upstash-Encoding": "base64" } });

const limit = { limit: 1_000, window: "1h" };

describe("conformance", () => {
  storeConformance(test, () => made());
});

describe("conformance, base64 answers", () => {
  storeConformance(test, () => made({ fetch: asksForBase64 }));
});

describe("conformance over another server of the protocol", () => {
  const program = join(
    import.meta.dirname,
    "../../node_modules/@humanwhocodes/upstash-redis-server/dist/server.js",
  );
  let child;
  let url;

  before(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const REDIS_URL = `redis://127.0.0.1:${served.server.port}`;
    const env = { ...process.env, PORT: String(port), URS_TOKEN: TOKEN, REDIS_URL };
    child = spawn(process.execPath, [program], { env, stdio: "ignore" });
    while (!(await fetch(url).catch(() => undefined))) await pause(20);
  });

  after(async () => {
    child.kill();
    await once(child, "exit");
  });

  storeConformance(test, () => made({ url }));

  test("a script that it does not know is sent again, alone and among others", async () => {
    for (const count of [1, 200]) {
      await served.client.script("FLUSH");
      const limiter = new Limiter({ limit, store: made({ url }) });
      const decisions = await Promise.all(
        Array.from({ length: count }, () => limiter.consume("key")),
      );
      assert.equal(decisions.at(-1).remaining, 1_000 - count);
    }
  });

  test("a token that it refuses", async () => {
    const limiter = new Limiter({ limit, store: made({ url, token: "another" }) });
    await assert.rejects(limiter.consume("key"), { code: "store", message: /token \(401\)/ });
  });
});

test("decisions of one tick travel in one request, in order per key; a lone one as a command", async () => {
  const { requests } = served.proxy;
  const limiter = new Limiter({ limit, store: made() });
  await limiter.consume("warm");
  requests.length = 0;
  const decisions = await Promise.all(
    Array.from({ length: 200 }, (_, at) => limiter.consume(`key ${at % 2}`)),
  );
  const remaining = decisions.map((decision) => decision.remaining);
  assert.deepEqual(
    remaining,
    remaining.map((_, at) => 999 - Math.floor(at / 2)),
  );
  assert.deepEqual(
    requests.map(({ url, body }) => [url.pathname, JSON.parse(body).length]),
    [["/pipeline", 4]],
  );
  requests.length = 0;
  await limiter.consume("alone");
  assert.equal(requests.length, 1);
  assert.equal(requests[0].url.pathname, "/");
  assert.equal(JSON.parse(requests[0].body)[0], "EVALSHA");
});

test("what is too long for one request goes in several", async () => {
  const { requests } = served.proxy;
  const dedup = new Deduplicator({ ttl: "1h", store: made({ maxBatch: 4 }), timeout: "10s" });
  const claims = await Promise.all(Array.from({ length: 24 }, (_, at) => dedup.claim(`id ${at}`)));
  requests.length = 0;
  const result = "é".repeat(10_000);
  const committed = await Promise.all(claims.map((claim) => claim.commit(result)));
  assert.ok(committed.every(Boolean));
  assert.ok(requests.length > 1, `${requests.length} requests`);
  for (const { body } of requests) assert.ok(body.length < 600_000, `${body.length} bytes`);
  assert.equal((await dedup.claim("id 23")).result, result);
});

test("200 consumers at once of one key, of four stores: exactly the limit is admitted", async () => {
  const prefix = "hot";
  const limiters = Array.from(
    { length: 4 },
    () => new Limiter({ limit: { limit: 50, window: "1h" }, store: made({ prefix }) }),
  );
  const decisions = await Promise.all(
    Array.from({ length: 200 }, async (_, at) => {
      if (at % 3 === 0) await pause(at % 7);
      return limiters[at % 4].consume("everybody");
    }),
  );
  assert.equal(decisions.filter(({ allowed }) => allowed).length, 50);
});

test("no key is without a time to live", async () => {
  const { client } = served;
  await client.flushall();
  const store = made();
  const limiter = new Limiter({ limit, store });
  await limiter.consume("a");
  await limiter.block("b", "1h");
  const dedup = new Deduplicator({ ttl: "1h", store });
  await dedup.first("c");
  await (await dedup.claim("d")).commit({ done: "✓" });
  await new BurstDetector({ threshold: 2, window: "1h", store }).observe("e");
  const keys = await client.keys("*");
  assert.equal(keys.length, 5);
  for (const key of keys) assert.ok((await client.pttl(key)) > 0, key);
});

test("a key of another type fails alone", async () => {
  const limiter = new Limiter({ limit, store: made({ prefix: "typed" }) });
  await served.client.lpush("typed/tg:l:list", "x");
  const [before, list, after] = await Promise.allSettled(
    ["a", "list", "b"].map((key) => limiter.consume(key)),
  );
  assert.deepEqual([before.value.remaining, after.value.remaining], [999, 999]);
  assert.equal(list.reason.code, "corrupt_state");
});

test("what the server tells of its state is sent back to it, by each store for itself", async () => {
  const { requests } = served.proxy;
  const [one, two] = [made(), made()].map((store) => new Limiter({ limit, store }));
  requests.length = 0;
  await one.consume("key");
  await one.consume("key");
  await two.consume("key");
  const told = requests.map(({ headers }) => headers["upstash-sync-token"]);
  assert.equal(told[0], undefined);
  assert.match(told[1], /^state-\d+$/);
  assert.equal(told[2], undefined);
});

test("the host's fetch is called as a function, and a path before the protocol's stays", async () => {
  const calls = [];
  async function send(url, request) {
    calls.push({ self: this, url });
    return fetch(served.proxy.url + url.slice("https://host.test/redis".length), request);
  }
  const store = made({ url: "https://host.test/redis/", fetch: send });
  const limiter = new Limiter({ limit, store });
  await Promise.all(Array.from({ length: 65 }, () => limiter.consume("key")));
  await limiter.consume("key");
  assert.deepEqual(new Set(calls.map(({ self }) => self)), new Set([undefined]));
  assert.deepEqual(
    new Set(calls.map(({ url }) => url)),
    new Set(["https://host.test/redis/pipeline", "https://host.test/redis"]),
  );
});

test("callers' clocks decide where the user says so", async (t) => {
  const limiter = new Limiter({
    limit: { limit: 1, window: "1h" },
    store: made({ clock: "caller" }),
  });
  assert.equal((await limiter.consume("key")).allowed, true);
  assert.equal((await limiter.consume("key")).allowed, false);
  const now = Date.now();
  t.mock.method(Date, "now", () => now + 3_600_000);
  assert.equal((await limiter.consume("key")).allowed, true);
});

test("what it promises, and that a decision has to wait for it", () => {
  const store = made();
  assert.deepEqual(store.capabilities, {
    atomicity: "exact",
    clock: "store",
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1,
  });
  assert.equal(made({ clock: "caller" }).capabilities.clock, "caller");
  const limiter = new Limiter({ limit, store });
  assert.throws(() => limiter.consumeSync("key"), { code: "sync_unavailable" });
});

describe("options", () => {
  const url = "https://db.example.io";
  const token = "s3cret";
  const refused = (options, ...says) =>
    assert.throws(
      () => new RedisRestStore(options),
      ({ code, message }) => {
        assert.equal(code, "bad_policy");
        for (const part of says) assert.ok(message.includes(part), message);
        assert.ok(!message.includes(token), message);
        return true;
      },
    );

  test("urls", () => {
    for (const good of [
      url,
      "http://localhost:8080",
      "http://127.0.0.1/x",
      "http://[::1]:1",
      "http://a.localhost",
    ]) {
      new RedisRestStore({ url: good, token });
    }
    refused({ token }, '"url"', "undefined");
    refused({ url: 5, token }, '"url"', "5");
    refused({ url: "db.example.io", token }, '"url"', '"db.example.io"');
    refused({ url: "http://db.example.io", token }, '"url"', '"http://db.example.io"');
    refused({ url: "http://127.0.0.1.example.io", token }, '"url"', "example.io");
    refused(
      { url: `rediss://default:${token}@db.example.io:6379`, token },
      '"rediss://db.example.io:6379"',
    );
    refused({ url: `https://user:${token}@db.example.io`, token }, '"https://db.example.io"');
    refused({ url: `${url}?_token=${token}`, token }, '"https://db.example.io"');
    refused({ url: token, token }, '"url"', "the token is in it");
    refused({ url: `//default:${token}@db.example.io`, token }, '"url"', "the token is in it");
  });

  test("tokens, which no error shows", () => {
    refused({ url }, '"token"', "undefined");
    refused({ url, token: "" }, '"token"', '""');
    refused({ url, token: 5 }, '"token"', "5");
    for (const bad of [`${token}\n`, `${token} x`, `${token}\0`, `é${token}`])
      refused({ url, token: bad }, '"token"');
    refused({ url: token, token: url }, '"token"', "URL");
  });

  test("the others", () => {
    refused(undefined, "plain object");
    refused({ url, token, fetch: "fetch" }, '"fetch"', '"fetch"');
    refused({ url, token, maxBatch: 0 }, '"maxBatch"', "0");
    refused({ url, token, prefix: "" }, '"prefix"');
    refused({ url, token, clock: "server" }, '"clock"');
    refused({ url, token, cluster: true }, '"cluster"');
  });
});
