// The script ran, but its reply was lost with the connection: each decision fails by its own policy, once, and was
// charged once. Nothing is sent a second time.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { createSentinel } from "redis";
import { BurstDetector, Deduplicator, Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect, quiet, single } from "../redis/clients.mjs";
import { KINDS, MASTER, Server, startCluster, stopAll, until } from "../redis/servers.mjs";
import { Wire } from "../redis/wire.mjs";
import { everythingEnds, nothingUnhandled } from "./load.mjs";

nothingUnhandled();

const limit = { limit: 10, window: "1h" };

/** How many scripts the servers have run, whatever came of them. */
async function scriptsRun(servers) {
  const stats = await Promise.all(servers.map((server) => server.ask("INFO", "commandstats")));
  return stats
    .flatMap((text) => [...text.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)])
    .reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** What each policy makes of the failure. */
const expected = {
  deny: ({ value }) => assert.deepEqual([value.reason, value.allowed], ["store-error", false]),
  allow: ({ value }) => assert.deepEqual([value.reason, value.allowed], ["store-error", true]),
  local: ({ value }) => assert.deepEqual([value.local, value.remaining], [true, 9]),
  throw: ({ reason }) => assert.equal(reason.code, "store"),
};

/** Asks for a decision by each policy in one tick, and loses the one reply on its way. */
async function losesOneReply(store, policies, wires, servers, meanwhile = () => {}) {
  const make = (onStoreError) =>
    new Limiter({ limit, store, onStoreError, prefix: onStoreError, timeout: "5s" });
  const limiters = policies.map(make);
  await Promise.all(limiters.map((limiter) => untilItAnswers(limiter, "key")));
  for (const limiter of limiters) await limiter.reset("key");
  const before = await scriptsRun(servers);
  const lost = Promise.race(wires.map((wire) => wire.loseReply()));
  const others = meanwhile();
  const answers = Promise.allSettled(limiters.map((limiter) => limiter.consume("key")));
  await lost;
  for (const wire of wires) wire.loseNothing();
  for (const [at, answer] of (await answers).entries()) expected[policies[at]](answer);
  await others;

  // What the client may have sent again would have come before what it is asked now.
  const answered = await untilItAnswers(limiters[0], "key");
  const calls = (await scriptsRun(servers)) - before;
  assert.ok(calls <= 1 + answered.asked, `${calls} calls`);
  assert.equal(answered.remaining, 8, "charged once");
  for (const limiter of limiters.slice(1)) {
    assert.equal((await limiter.peek("key")).remaining, 9, "charged once");
  }
}

/** The first decision that is the server's, and how often it was asked for one. */
async function untilItAnswers(limiter, key) {
  let decision;
  let asked = 0;
  await until("it answers", async () => {
    asked += 1;
    decision = await limiter.consume(key).catch(({ code }) => ({ reason: code }));
    return decision.reason === "ok" && !decision.local;
  });
  return { ...decision, asked };
}

for (const kind of KINDS) {
  describe(`on a single server, ${kind}`, () => {
    let server;
    let wire;
    before(async () => {
      server = await Server.start([], `${kind}-server`);
      wire = await Wire.start(server.port);
    });
    after(async () => {
      await everythingEnds(server);
      await wire.stop();
      await server.stop();
    });

    for (const name of Object.keys(single)) {
      test(`${name} sends nothing twice`, async (t) => {
        await server.ask("FLUSHALL");
        const client = await single[name](wire.port);
        t.after(() => disconnect(client));
        const store = new RedisStore(client, { cluster: false });
        await losesOneReply(store, Object.keys(expected), [wire], [server]);
      });
    }

    test("nor does ioredis where it pipelines by itself, with commands of others", async (t) => {
      await server.ask("FLUSHALL");
      const client = quiet(new Redis(wire.port, { enableAutoPipelining: true }));
      t.after(() => disconnect(client));
      const store = new RedisStore(client, { cluster: false });
      const ofOthers = () => client.get("theirs");
      await losesOneReply(store, Object.keys(expected), [wire], [server], ofOthers);
    });

    test("a message is handled at most once, and a firing told again by its nonce", async (t) => {
      const client = await single.ioredis(wire.port);
      t.after(() => disconnect(client));
      const store = new RedisStore(client, { cluster: false });
      const dedup = new Deduplicator({ store, ttl: "1h" });
      const bursts = new BurstDetector({ store, threshold: 1, window: "1h" });
      await dedup.first("warm");
      const lose = async (ask) => {
        const lost = wire.loseReply();
        const answer = assert.rejects(ask, { code: "store" });
        await lost;
        await answer;
      };
      await lose(() => dedup.first("id"));
      assert.equal(await dedup.first("id"), false);
      await lose(() => bursts.observe("who", { nonce: "n" }));
      const { fired, count, replay } = await bursts.observe("who", { nonce: "n" });
      assert.deepEqual([fired, count, replay], [true, 1, true]);
    });
  });
}

test("nor does node-redis over Sentinel, told not to", async (t) => {
  const server = await Server.start();
  const wire = await Wire.start(server.port);
  const sentinel = await Server.start([], "redis-sentinel");
  t.after(() => stopAll([wire, sentinel, server]));
  await sentinel.ask("SENTINEL", "MONITOR", MASTER, "127.0.0.1", String(wire.port), "1");
  const sentinelRootNodes = [{ host: "127.0.0.1", port: sentinel.port }];
  const options = { name: MASTER, sentinelRootNodes, maxCommandRediscovers: 0 };
  const client = await quiet(createSentinel(options)).connect();
  t.after(() => disconnect(client));
  const store = new RedisStore(client, { cluster: false });
  await losesOneReply(store, Object.keys(expected), [wire], [server]);
});

for (const [name, kind] of [
  ["ioredis", "redis"],
  ["node-redis", "redis"],
  ["iovalkey", "valkey"],
  ["GLIDE", "valkey"],
]) {
  test(`on a cluster, ${name} sends nothing twice`, async (t) => {
    const wires = await Promise.all([1, 2, 3].map(() => Wire.start()));
    const args = (at) => ["--cluster-announce-port", String(wires[at].port)];
    const servers = await startCluster({ kind, args });
    t.after(() => stopAll([...wires, ...servers]));
    for (const [at, wire] of wires.entries()) wire.target = servers[at].port;
    const client = await cluster[name](wires.map(({ port }) => port));
    t.after(() => disconnect(client));
    await losesOneReply(new RedisStore(client, { cluster: true }), ["deny"], wires, servers);
    await everythingEnds(...servers);
  });
}
