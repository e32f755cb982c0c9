// A cluster whose slots move and whose nodes forget their scripts, under load: every decision is made, and counts are exact.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect } from "../redis/clients.mjs";
import { startCluster, stopAll, until } from "../redis/servers.mjs";
import { everythingEnds, Load, nothingUnhandled } from "./load.mjs";

nothingUnhandled();

const LIMIT = 400;
const limit = { algorithm: "fixed-window", limit: LIMIT, window: "1h" };
const keys = Array.from({ length: 12 }, (_, at) => `key ${at}`);
const ports = (servers) => servers.map(({ port }) => port);

for (const [kind, names] of [
  ["redis", ["ioredis", "node-redis"]],
  ["valkey", ["iovalkey", "GLIDE"]],
]) {
  describe(`${kind}`, () => {
    let servers;
    before(async () => {
      servers = await startCluster({ kind });
    });
    after(() => stopAll(servers));

    for (const name of names) {
      test(`slots move while their keys are counted: ${name}`, async (t) => {
        const client = await cluster[name](ports(servers));
        t.after(() => disconnect(client));
        const prefix = `move ${name}`;
        const store = new RedisStore(client, { prefix });
        const load = new Load(new Limiter({ limit, store, timeout: "10s" }), keys);
        for (const server of servers) await server.ask("CONFIG", "RESETSTAT");
        await until("the load is on", () => load.admitted() > 200);
        for (let at = 0; !load.isSpent(); at += 1) {
          await move(servers, `${prefix}/tg:l:${keys[at % keys.length]}`);
        }
        await load.stop();
        const errors = await Promise.all(servers.map((server) => server.ask("INFO", "errorstats")));
        assert.match(errors.join(), /ASK:.*MOVED:/s, "callers were sent elsewhere");
        for (const key of keys) assert.equal(load.admitted(key), LIMIT, key);
        await everythingEnds(...servers);
      });

      test(`nodes forget their scripts between calls: ${name}`, async (t) => {
        const client = await cluster[name](ports(servers));
        t.after(() => disconnect(client));
        const store = new RedisStore(client, { prefix: `flush ${name}` });
        const load = new Load(new Limiter({ limit, store, timeout: "10s" }), keys);
        while (!load.isSpent()) {
          await Promise.all(servers.map((server) => server.ask("SCRIPT", "FLUSH")));
        }
        await load.stop();
        for (const key of keys) assert.equal(load.admitted(key), LIMIT, key);
      });
    }
  });
}

/** Moves the slot of a key to another master, one key at a time, as a resharding does. */
async function move(servers, key) {
  const slot = await servers[0].ask("CLUSTER", "KEYSLOT", key);
  const owners = await Promise.all(
    servers.map((server) => server.ask("EXISTS", key).catch(() => 0)),
  );
  const from = servers[owners.indexOf(1)];
  const to = servers.find((server) => server !== from);
  const [fromId, toId] = await Promise.all([from, to].map((one) => one.ask("CLUSTER", "MYID")));
  await to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  for (const moved of await from.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)) {
    await from.ask("MIGRATE", "127.0.0.1", to.port, moved, 0, 5_000);
  }
  // The new owner first, so that no node sends a caller to one that does not know yet.
  for (const server of [to, ...servers]) await server.ask("CLUSTER", "SETSLOT", slot, "NODE", toId);
}
