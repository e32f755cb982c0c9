// A cluster that loses a master under load: counts hold but for what was not replicated, and service resumes by itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect } from "../redis/clients.mjs";
import { startCluster, stopAll, until } from "../redis/servers.mjs";
import { killMaster, LIMIT, limit } from "./failover.mjs";
import { countsHold, everythingEnds, keysOn, Load, nothingUnhandled } from "./load.mjs";

nothingUnhandled();

const keys = Array.from({ length: 12 }, (_, at) => `key ${at}`);

for (const [name, kind] of [
  ["ioredis", "redis"],
  ["node-redis", "redis"],
  ["GLIDE", "valkey"],
]) {
  test(`a master dies: ${name}, ${kind}`, async (t) => {
    const servers = await startCluster({ kind, replicas: 1 });
    t.after(() => stopAll(servers));
    const [master, second, third, replica] = servers;
    const client = await cluster[name](servers.map(({ port }) => port));
    t.after(() => disconnect(client));
    const store = new RedisStore(client, { prefix: name });
    const load = new Load(new Limiter({ limit, store, onStoreError: "deny" }), keys);
    t.after(() => load.stop());
    await until("the load is on", () => load.admitted() > 1_200);
    const held = await keysOn(master);
    const its = keys.filter((key) => held.includes(`${name}/tg:l:${key}`));
    const lost = await killMaster(master, replica, load, its, name);
    assert.ok(
      [...lost.values()].some((units) => units > 0),
      "the bound is put to the test",
    );

    const killed = load.decisions.length;
    await until("the budgets are spent", () => load.isSpent(killed));
    await load.stop();
    countsHold(load, LIMIT, "deny", lost);
    await everythingEnds(second, third, replica);
  });
}
