// What happens to decisions when the server does not answer: each by its own policy, and service resumes by itself.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { Deduplicator, Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { Server } from "./servers.mjs";

const rejections = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));

let server;
let client;

before(async () => {
  server = await Server.start();
  client = new Redis(server.port, { retryStrategy: () => 20 });
  client.on("error", () => {});
});

after(async () => {
  client.disconnect();
  await server.stop();
  assert.deepEqual(rejections, []);
});

const limit = { limit: 5, window: "1h" };

/** Asks until the store answers again; the breaker lets a call through from time to time. */
async function untilItAnswers(limiter, key) {
  for (;;) {
    const decision = await limiter.consume(key);
    if (decision.reason === "ok" || decision.reason === "limited") return decision;
  }
}

test("a server that hangs: each policy in its own words, then service resumes", async () => {
  const store = new RedisStore(client, { prefix: "hang" });
  const make = (onStoreError) => new Limiter({ limit, store, onStoreError, timeout: 100 });
  const limiters = ["deny", "allow", "local", "throw"].map(make);
  for (const limiter of limiters) await limiter.consume("warm");
  server.signal("SIGSTOP");
  const [deny, allow, local, thrown] = await Promise.allSettled(
    limiters.map((limiter) => limiter.consume("key")),
  );
  server.signal("SIGCONT");
  assert.deepEqual([deny.value.reason, deny.value.allowed], ["timeout", false]);
  assert.ok(deny.value.retryAfterMs > 0 && Number.isFinite(deny.value.retryAfterMs));
  assert.deepEqual(
    [allow.value.reason, allow.value.allowed, allow.value.retryAfterMs],
    ["timeout", true, 0],
  );
  assert.deepEqual([local.value.reason, local.value.local, local.value.remaining], ["ok", true, 4]);
  assert.equal(thrown.reason.code, "timeout");
  assert.equal((await untilItAnswers(limiters[0], "warm")).local, false);
});

test("a server that is killed and restarted is asked again by itself", async () => {
  const store = new RedisStore(client, { prefix: "kill" });
  const limiter = new Limiter({ limit, store, onStoreError: "deny", timeout: 200 });
  await limiter.consume("key");
  await server.kill();
  const reasons = new Set();
  for (let call = 0; call < 20; call += 1) reasons.add((await limiter.consume("key")).reason);
  assert.ok([...reasons].every((reason) => reason === "timeout" || reason === "store-error"));
  await server.restart();
  const decision = await untilItAnswers(limiter, "after");
  assert.equal(decision.allowed, true);
  const dedup = new Deduplicator({ ttl: "1h", store, timeout: "5s" });
  assert.deepEqual([await dedup.first("id"), await dedup.first("id")], [true, false]);
});

test("a server that may not write says so, and is a store error", async () => {
  const limiter = new Limiter({ limit, store: new RedisStore(client, { prefix: "full" }) });
  await client.config("SET", "maxmemory", "1");
  await assert.rejects(limiter.consume("key"), { code: "store", message: /OOM/ });
  await client.config("SET", "maxmemory", "0");
  assert.equal((await limiter.consume("key")).remaining, 4);
  await client.replicaof("127.0.0.1", "1");
  await assert.rejects(limiter.consume("key"), { code: "store", message: /READONLY/ });
  await client.replicaof("NO", "ONE");
  assert.equal((await limiter.consume("key")).remaining, 3);
});
