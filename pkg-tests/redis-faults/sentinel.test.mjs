// Sentinels replace a master that dies under load: every decision meanwhile by its own policy, counts that hold, and
// service resumes by itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createSentinel } from "redis";
import { Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { disconnect, quiet } from "../redis/clients.mjs";
import { MASTER, startSentinels, stopAll, until } from "../redis/servers.mjs";
import { killMaster, LIMIT, limit } from "./failover.mjs";
import { countsHold, everythingEnds, Load, nothingUnhandled } from "./load.mjs";

nothingUnhandled();

const keys = Array.from({ length: 10 }, (_, at) => `key ${at}`);
const host = "127.0.0.1";

const clients = {
  ioredis: (sentinels) => quiet(new Redis({ sentinels, name: MASTER })),
  iovalkey: (sentinels) => quiet(new Valkey({ sentinels, name: MASTER })),
  "node-redis": (sentinelRootNodes) =>
    quiet(createSentinel({ name: MASTER, sentinelRootNodes, maxCommandRediscovers: 0 })).connect(),
};

for (const [name, kind, onStoreError] of [
  ["ioredis", "redis", "deny"],
  ["iovalkey", "valkey", "allow"],
  ["node-redis", "redis", "deny"],
]) {
  test(`the master dies: ${name}, ${kind}, "${onStoreError}"`, async (t) => {
    const { master, replica, sentinels, all } = await startSentinels(kind);
    t.after(() => stopAll(all));
    const client = await clients[name](sentinels.map(({ port }) => ({ host, port })));
    t.after(() => disconnect(client));
    const store = new RedisStore(client, { prefix: name, cluster: false });
    const load = new Load(new Limiter({ limit, store, onStoreError }), keys);
    t.after(() => load.stop());
    await until("the load is on", () => load.admitted() > 1_000);
    const lost = await killMaster(master, replica, load, keys, name);
    assert.ok(
      [...lost.values()].some((units) => units > 0),
      "the bound is put to the test",
    );

    const killed = load.decisions.length;
    await until("the budgets are spent on the new master", () => load.isSpent(killed));
    await load.stop();
    countsHold(load, LIMIT, onStoreError, lost);
    await everythingEnds(replica);
  });
}
