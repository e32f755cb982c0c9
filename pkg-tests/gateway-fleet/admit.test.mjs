// The limit and the claim of a message in one call to Redis.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { MemoryStore, metrics } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { believe, start } from "../gateway/harness.mjs";
import { Server, startCluster } from "../redis/servers.mjs";
import { as } from "./fleet.mjs";

const LIMIT = { algorithm: "fixed-window", limit: 3, window: "1h" };

/** A gateway on that store, a client, and what its handler was given. */
async function orders(t, store) {
  const handled = [];
  const { connect } = await start(
    t,
    { store, timeout: "5s", events: { order: { limit: LIMIT, dedup: {} }, free: { dedup: {} } } },
    {
      early: believe,
      onConnection(socket, gateway) {
        for (const event of ["order", "free"]) {
          gateway.on(socket, event, ({ mid }) => {
            handled.push(mid);
            return mid;
          });
        }
      },
    },
  );
  const client = await connect(as("somebody"));
  const order = async (mid, event = "order") => {
    const answer = await client.emitWithAck(event, { mid });
    return answer.error?.code ?? answer;
  };
  return { handled, order };
}

/** How often the server has run a script. */
async function runs(redis) {
  const stats = await redis.info("commandstats");
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

/** How many copies have been counted. */
const duplicates = () => Number(/^tidegate_duplicates_total (\d+)$/m.exec(metrics())[1]);

/** Whatever travels how, this is what comes of it. */
async function holds({ handled, order }) {
  const before = duplicates();
  assert.deepEqual([await order("a"), await order("b"), await order("a")], ["a", "b", "a"]);
  assert.equal(await order("c"), "RATE_LIMITED");
  assert.equal(await order("b"), "b", "over the limit, what is done is still answered");
  assert.equal(await order("c"), "RATE_LIMITED", "and what was refused is not claimed");
  const many = ["x", "c", "y", "x", "a", "z"];
  const answers = await Promise.all([...many.map((mid) => order(mid)), order("f", "free")]);
  assert.deepEqual(answers, [...many.map((mid) => (mid === "a" ? "a" : "RATE_LIMITED")), "f"]);
  assert.deepEqual(handled, ["a", "b", "f"]);
  assert.equal(duplicates() - before, 3, "a copy is counted where it is answered as one");
}

test("in memory", async (t) => {
  await holds(await orders(t, new MemoryStore()));
});

test("a message is two calls: limit and claim, then its commit", async (t) => {
  const server = await Server.start();
  const redis = new Redis(server.port);
  t.after(async () => {
    redis.disconnect();
    await server.stop();
  });
  const gateway = await orders(t, new RedisStore(redis, { cluster: false }));
  await gateway.order("a");
  const before = await runs(redis);
  await gateway.order("b");
  assert.equal((await runs(redis)) - before, 2);
  await gateway.order("a");
  assert.equal((await runs(redis)) - before, 3, "a copy is one");
});

test("on one server", async (t) => {
  const server = await Server.start();
  const redis = new Redis(server.port);
  t.after(async () => {
    redis.disconnect();
    await server.stop();
  });
  await holds(await orders(t, new RedisStore(redis)));
});

test("in batches that part a decision from its claim", async (t) => {
  const server = await Server.start();
  const redis = new Redis(server.port);
  t.after(async () => {
    redis.disconnect();
    await server.stop();
  });
  await holds(await orders(t, new RedisStore(redis, { cluster: false, maxBatch: 1 })));
  await redis.flushall();
  await holds(await orders(t, new RedisStore(redis, { cluster: false, maxBatch: 3 })));
});

test("on a cluster, where it is two calls", async (t) => {
  const servers = await startCluster();
  const cluster = new Redis.Cluster(servers.map(({ port }) => ({ host: "127.0.0.1", port })));
  t.after(async () => {
    cluster.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  });
  await holds(await orders(t, new RedisStore(cluster)));
});
