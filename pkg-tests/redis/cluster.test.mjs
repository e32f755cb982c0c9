// RedisStore on a cluster of three masters: every call's keys are of one slot.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { Limiter } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { startCluster } from "./servers.mjs";

let servers;
const clients = {};
let prefixes = 0;

before(async () => {
  servers = await startCluster();
  const nodes = servers.map(({ port }) => ({ host: "127.0.0.1", port }));
  clients.ioredis = new Cluster(nodes);
  const rootNodes = nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` }));
  clients["node-redis"] = await createCluster({ rootNodes }).connect();
});

after(async () => {
  clients.ioredis.disconnect();
  clients["node-redis"].destroy();
  await Promise.all(servers.map((server) => server.stop()));
});

for (const name of ["ioredis", "node-redis"]) {
  describe(`conformance on a cluster over ${name}`, () => {
    storeConformance(test, () => new RedisStore(clients[name], { prefix: `p${prefixes++}` }));
  });
}

test("decisions on keys of many slots are all made", async () => {
  const store = new RedisStore(clients.ioredis, { prefix: "many" });
  const limiter = new Limiter({ limit: { limit: 2, window: "1h" }, store, timeout: "10s" });
  for (const remaining of [1, 0]) {
    const decisions = await Promise.all(
      Array.from({ length: 500 }, (_, at) => limiter.consume(`key ${at}`)),
    );
    assert.ok(decisions.every((decision) => decision.remaining === remaining));
  }
});
