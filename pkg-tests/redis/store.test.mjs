// RedisStore on a real server, over each client.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { BurstDetector, Deduplicator, Limiter } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { Server } from "./servers.mjs";

let server;
const clients = {};
let prefixes = 0;

before(async () => {
  server = await Server.start();
  const { port } = server;
  clients.ioredis = new Redis(port);
  clients.iovalkey = new Valkey(port);
  clients["node-redis"] = await createClient({ url: `redis://127.0.0.1:${port}` }).connect();
  const { ioredis } = clients;
  clients["one function"] = {
    evalScript: (script, _sha, keys, args) => ioredis.eval(script, keys.length, ...keys, ...args),
  };
});

after(async () => {
  clients.ioredis.disconnect();
  clients.iovalkey.disconnect();
  clients["node-redis"].destroy();
  await server.stop();
});

const fresh = (client, options) => new RedisStore(client, { prefix: `p${prefixes++}`, ...options });

for (const name of ["ioredis", "iovalkey", "node-redis", "one function"]) {
  describe(`conformance over ${name}`, () => {
    storeConformance(test, () => fresh(clients[name]));
  });
}

describe("conformance on callers' clocks", () => {
  storeConformance(test, () => fresh(clients.ioredis, { clock: "caller" }));
});

test("no key is ever without a time to live, and one that somebody left so is healed", async () => {
  const client = clients.ioredis;
  await client.flushall();
  const store = fresh(client);
  const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, store });
  const dedup = new Deduplicator({ ttl: "1h", store });
  await limiter.consume("a");
  await limiter.refund("a", 1);
  await limiter.consume("a");
  await limiter.block("b", "1h");
  await dedup.first("c");
  const claim = await dedup.claim("d");
  await claim.commit("done");
  await (await dedup.claim("e")).release();
  await new BurstDetector({ threshold: 2, window: "1h", store }).observe("f");
  const keys = await client.keys("*");
  assert.equal(keys.length, 5);
  for (const key of keys) assert.ok((await client.pttl(key)) > 0, key);

  const key = keys.find((key) => key.endsWith(":l:a"));
  await client.persist(key);
  assert.equal((await limiter.consume("a")).allowed, false);
  assert.ok((await client.pttl(key)) > 0, "healed by a denial");
});

test("decisions of one tick travel together, and a lone one at once", async () => {
  const client = clients.ioredis;
  const calls = async () => {
    const stats = await client.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const limiter = new Limiter({
    limit: { limit: 1000, window: "1h" },
    store: fresh(client, { cluster: false }),
  });
  await limiter.consume("warm");
  const before = await calls();
  const decisions = await Promise.all(
    Array.from({ length: 128 }, (_, at) => limiter.consume(`key ${at % 3}`)),
  );
  assert.equal((await calls()) - before, 2, "128 decisions in two calls");
  const ofFirst = decisions.filter((_, at) => at % 3 === 0).map(({ remaining }) => remaining);
  assert.deepEqual(
    ofFirst,
    ofFirst.map((_, at) => 999 - at),
    "in order per key",
  );
});

test("a key of another type fails alone, and scripts that were flushed are sent again", async () => {
  const client = clients.ioredis;
  const store = fresh(client, { prefix: "typed", cluster: false });
  const limiter = new Limiter({ limit: { limit: 9, window: "1h" }, store });
  await client.lpush("typed/tg:l:list", "x");
  await client.set("typed/tg:l:text", "not ours");
  await client.script("FLUSH");
  const answers = await Promise.allSettled(
    ["a", "list", "b", "text"].map((key) => limiter.consume(key)),
  );
  assert.deepEqual(
    answers.map(({ status, reason }) => (status === "fulfilled" ? "ok" : reason.code)),
    ["ok", "corrupt_state", "ok", "corrupt_state"],
  );
});

test("a client of no known shape is named, and options are checked", () => {
  for (const client of [undefined, null, {}, { get() {} }, "redis://"]) {
    assert.throws(() => new RedisStore(client), { code: "bad_policy", message: /evalScript/ });
  }
  for (const [options, name] of [
    [{ maxBatch: 0 }, "maxBatch"],
    [{ clock: "server" }, "clock"],
    [{ cluster: 1 }, "cluster"],
    [{ prefix: "" }, "prefix"],
    [{ batch: 1 }, "batch"],
  ]) {
    const made = () => new RedisStore(clients.ioredis, options);
    assert.throws(made, (error) => error.code === "bad_policy" && error.message.includes(name));
  }
  assert.equal(new RedisStore(clients.ioredis, { clock: "caller" }).capabilities.clock, "caller");
});
