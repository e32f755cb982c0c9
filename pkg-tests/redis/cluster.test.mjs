// RedisStore on real clusters of three masters, over each client: every call's keys are of one slot.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect } from "./clients.mjs";
import { KINDS, startCluster } from "./servers.mjs";

let prefixes = 0;

for (const kind of KINDS) {
  describe(kind, () => {
    const clients = {};
    let servers;

    before(async () => {
      servers = await startCluster({ kind });
      for (const [name, connect] of Object.entries(cluster)) {
        clients[name] = await connect(servers.map(({ port }) => port));
      }
    });

    after(async () => {
      for (const client of Object.values(clients)) disconnect(client);
      await Promise.all(servers.map((server) => server.stop()));
    });

    for (const name of Object.keys(cluster)) {
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
