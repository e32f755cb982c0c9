// What travels together: decisions of one tick, in as few calls as slots allow, each with an outcome of its own.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { cluster, disconnect, single } from "./clients.mjs";
import { Server, startCluster, stopAll } from "./servers.mjs";

const limit = { limit: 1000, window: "1h" };
const digest = (text) => createHash("sha1").update(text).digest("hex");
const remainingOf = (decisions) => decisions.map(({ remaining }) => remaining);

/** How many scripts servers have run. */
async function scriptsRun(...servers) {
  const stats = await Promise.all(servers.map((server) => server.ask("INFO", "commandstats")));
  const counts = stats.map((text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0));
  return counts.reduce((sum, count) => sum + count, 0);
}

describe("on a single server", () => {
  let server;
  let client;
  before(async () => {
    server = await Server.start();
    client = await single.ioredis(server.port);
  });
  after(async () => {
    disconnect(client);
    await server.stop();
  });

  test("decisions of one tick travel in one call, at most maxBatch in each, in order per key", async () => {
    const store = new RedisStore(client, { prefix: "tick", cluster: false });
    const limiter = new Limiter({ limit, store });
    await limiter.consume("warm");
    const before = await scriptsRun(server);
    const decisions = await Promise.all(
      Array.from({ length: 128 }, (_, at) => limiter.consume(`key ${at % 3}`)),
    );
    assert.equal((await scriptsRun(server)) - before, 2, "128 decisions, 64 in a call");
    const ofFirst = remainingOf(decisions.filter((_, at) => at % 3 === 0));
    const inOrder = ofFirst.map((_, at) => 999 - at);
    assert.deepEqual(ofFirst, inOrder);
  });

  test("limiters that share a store share its calls", async () => {
    const store = new RedisStore(client, { prefix: "shared", cluster: false });
    const limiters = ["a", "b", "c"].map((prefix) => new Limiter({ limit, store, prefix }));
    await limiters[0].consume("warm");
    const before = await scriptsRun(server);
    const decisions = await Promise.all(limiters.map((limiter) => limiter.consume("key")));
    assert.equal((await scriptsRun(server)) - before, 1);
    assert.deepEqual(remainingOf(decisions), [999, 999, 999], "each with a budget of its own");
  });

  test("a lone decision leaves within the tick that asked for it", async () => {
    let sent = false;
    const evalScript = (script, _sha, keys, args) => {
      sent = true;
      return client.eval(script, keys.length, ...keys, ...args);
    };
    const limiter = new Limiter({ limit, store: new RedisStore({ evalScript }) });
    const tickIsOver = new Promise((over) => setImmediate(over));
    const decision = limiter.consume("lone");
    await tickIsOver;
    assert.ok(sent);
    assert.equal((await decision).remaining, 999);
  });
});

describe("on a cluster", () => {
  let servers;
  let client;
  before(async () => {
    servers = await startCluster();
    client = await cluster.ioredis(servers.map(({ port }) => port));
  });
  after(async () => {
    disconnect(client);
    await stopAll(servers);
  });

  test("decisions of one tick travel in one call per slot", async () => {
    const store = new RedisStore(client, { prefix: "slots" });
    const limiter = new Limiter({ limit, store, timeout: "10s" });
    await limiter.consume("warm");
    const keys = Array.from({ length: 300 }, (_, at) => digest(`key ${at}`));
    await Promise.all(keys.map((key) => limiter.consume(key)));
    const asking = servers[0].client();
    const slotOf = (key) => asking.cluster("KEYSLOT", `slots/tg:l:${key}`);
    const slots = new Set(await Promise.all(keys.map(slotOf)));
    asking.disconnect();
    assert.ok(slots.size < keys.length, "some keys share a slot");

    for (const server of servers) await server.ask("CONFIG", "RESETSTAT");
    const rounds = [1, 2, 3].flatMap(() => keys.map((key) => limiter.consume(key)));
    const decisions = await Promise.all(rounds);
    assert.equal(await scriptsRun(...servers), slots.size);
    for (const round of [1, 2, 3]) {
      const ofRound = decisions.slice((round - 1) * keys.length, round * keys.length);
      assert.ok(
        ofRound.every(({ remaining }) => remaining === 999 - round),
        "in order per key",
      );
    }
  });
});
