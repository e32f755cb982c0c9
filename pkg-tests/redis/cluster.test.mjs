// RedisStore on real clusters of three masters, over each client: every call's keys are of one slot.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect } from "./clients.mjs";
import { startCluster, stopAll } from "./servers.mjs";

let prefixes = 0;

for (const [kind, names] of [
  ["redis", ["ioredis", "node-redis"]],
  ["valkey", ["iovalkey", "GLIDE"]],
]) {
  describe(kind, () => {
    const clients = {};
    let servers;

    before(async () => {
      servers = await startCluster({ kind });
      const ports = servers.map(({ port }) => port);
      for (const name of names) clients[name] = await cluster[name](ports);
    });

    after(async () => {
      for (const client of Object.values(clients)) disconnect(client);
      await stopAll(servers);
    });

    for (const name of names) {
      describe(`conformance over ${name}`, () => {
        storeConformance(test, () => new RedisStore(clients[name], { prefix: `p${prefixes++}` }));
      });
    }

    test("no call was ever refused for keys of several slots", async () => {
      for (const server of servers) {
        const errors = await server.ask("INFO", "errorstats");
        assert.match(errors, /NOSCRIPT/, "errors are counted");
        assert.doesNotMatch(errors, /CROSSSLOT/);
      }
    });
  });
}
