// Arkos' store on a real server.

import assert from "node:assert/strict";
import { after, before, describe, mock, test } from "node:test";
import { Cluster, Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { Deduplicator, Limiter, storeFrom, toArkosStore } from "tidegate";
import { RedisArkosGatewayStore } from "tidegate/arkos";
import { RedisStore } from "tidegate/redis";
import { Server, startCluster } from "../redis/servers.mjs";
import { arkosSuite, refused, START } from "./suite.mjs";

let server;
let client;
const clients = {};
let prefixes = 0;

before(async () => {
  server = await Server.start();
  client = new Redis(server.port);
  clients.ioredis = client;
  clients.iovalkey = new Valkey(server.port);
  clients["node-redis"] = await createClient({ url: `redis://127.0.0.1:${server.port}` }).connect();
  clients["one function"] = {
    evalScript: (script, _sha, keys, args) => client.eval(script, keys.length, ...keys, ...args),
  };
});

after(async () => {
  mock.timers.reset();
  client.disconnect();
  clients.iovalkey.disconnect();
  clients["node-redis"].destroy();
  await server.stop();
});

const fresh = (over = client) => new RedisArkosGatewayStore(over, { prefix: `p${prefixes++}` });

describe("on a clock that is moved by hand", () => {
  before(() => mock.timers.enable({ apis: ["Date"] }));
  after(() => mock.timers.reset());
  arkosSuite(() => {
    mock.timers.setTime(START);
    const options = { prefix: `p${prefixes++}`, clock: "caller", cluster: false };
    const clock = {
      get ms() {
        return Date.now();
      },
      set ms(time) {
        mock.timers.setTime(time);
      },
    };
    return { clock, store: toArkosStore(new RedisStore(client, options)) };
  });
});

for (const name of ["ioredis", "iovalkey", "node-redis", "one function"]) {
  test(`over ${name}, on the server's clock`, async () => {
    const store = fresh(clients[name]);
    const [seconds, micros] = await client.time();
    const now = seconds * 1_000 + Math.floor(micros / 1_000);
    const { resetAt } = await store.increment("arkos::rl:s1:chat", 60_000);
    assert.ok(resetAt >= now + 60_000 && resetAt < now + 70_000, `${resetAt - now}`);
    const counted = await Promise.all(
      Array.from({ length: 200 }, () => store.increment("arkos::rl:s1:chat", 60_000)),
    );
    assert.deepEqual(
      counted,
      counted.map((_, at) => ({ count: at + 2, resetAt })),
    );
    const asked = Array.from({ length: 50 }, () => store.setIfNotExists("arkos::dedup:chat:1", 60));
    assert.equal((await Promise.all(asked)).filter((first) => first).length, 1);
    await store.clear("arkos::rl:s1");
    assert.equal((await store.increment("arkos::rl:s1:chat", 60_000)).count, 1);
    assert.equal(await store.has("arkos::dedup:chat:1"), true);
  });
}

test("all who share a server share counters and ids, and a prefix of one's own parts them", async () => {
  const prefix = `p${prefixes++}`;
  const [one, other] = [client, clients["node-redis"]].map(
    (over) => new RedisArkosGatewayStore(over, { prefix }),
  );
  assert.equal((await one.increment("arkos::rl:s:e", 60_000)).count, 1);
  assert.equal((await other.increment("arkos::rl:s:e", 60_000)).count, 2);
  assert.equal((await fresh().increment("arkos::rl:s:e", 60_000)).count, 1);
  await one.set("id", 60);
  assert.equal(await other.setIfNotExists("id", 60), false);
  await other.clear("arkos::rl:s");
  assert.equal((await one.increment("arkos::rl:s:e", 60_000)).count, 1);
});

test("what Arkos keeps and what limits keep never meet", async () => {
  const store = new RedisStore(client, { prefix: `p${prefixes++}` });
  const limit = { algorithm: "fixed-window", limit: 5, window: "1m" };
  const limiter = new Limiter({ limit, store });
  const ids = new Deduplicator({ store, ttl: "1m" });
  const arkos = toArkosStore(store);
  assert.equal(toArkosStore(store), arkos);
  for (const key of ["k", "arkos::rl:s", "arkos::rl:s:e"]) {
    await limiter.consume(key);
    await ids.first(key);
    assert.equal((await arkos.increment(key, 60_000)).count, 1);
    assert.equal(await arkos.setIfNotExists(key, 60), true);
  }
  await arkos.clear("arkos::rl:s");
  assert.equal((await limiter.peek("arkos::rl:s:e")).remaining, 4);
  assert.equal(await ids.has("arkos::rl:s"), true);
});

/** The commands that the server ran for that. */
async function commandsOf(body) {
  await client.config("RESETSTAT");
  await body();
  const stats = await client.info("commandstats");
  const counts = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)];
  return Object.fromEntries(counts.map(([, name, calls]) => [name, Number(calls)]));
}

test("a socket is cleared by one delete, whatever else there is", async () => {
  const store = fresh();
  const asked = [];
  for (let socket = 0; socket < 50; socket += 1) {
    for (let event = 0; event < 20; event += 1) {
      asked.push(store.increment(`arkos::rl:s${socket}:e${event}`, 60_000));
    }
  }
  await Promise.all(asked);
  const commands = await commandsOf(() => store.clear("arkos::rl:s7"));
  assert.deepEqual(commands, { evalsha: 1, del: 1, time: 1 });
  assert.equal((await store.increment("arkos::rl:s7:e1", 60_000)).count, 1);
  assert.equal((await store.increment("arkos::rl:s8:e1", 60_000)).count, 2);
});

test("another prefix can not be cleared, and nothing is asked of the server", async () => {
  const store = fresh();
  await store.increment("k:a", 60_000);
  const commands = await commandsOf(async () => {
    for (const prefix of ["k", "arkos::rl:", "arkos::rl", "arkos::rl:s:e", "arkos::dedup:e"]) {
      await assert.rejects(store.clear(prefix), refused("unsupported"), prefix);
    }
  });
  assert.equal(commands.evalsha, undefined);
  assert.equal((await store.increment("k:a", 60_000)).count, 2);
});

test("no key is ever without a time to live, and a socket's lives as long as its longest window", async () => {
  const prefix = `p${prefixes++}`;
  const store = new RedisArkosGatewayStore(client, { prefix });
  await store.increment("arkos::rl:s:short", 10_000);
  await store.increment("arkos::rl:s:long", 600_000);
  await store.increment("arkos::rl:s:short", 10_000);
  await store.set("arkos::rl:s:id", 30);
  await store.increment("alone", 20_000);
  await store.set("id", 40);
  await store.setIfNotExists("other", 50);
  const keys = await client.keys(`${prefix}/*`);
  const lives = await Promise.all(keys.map((key) => client.pttl(key)));
  const seconds = lives.map((ms) => Math.ceil(ms / 1_000)).sort((a, b) => a - b);
  assert.deepEqual(seconds, [20, 40, 50, 600]);
});

test("what is over does not stay for as long as a socket asks for more", async () => {
  const prefix = `p${prefixes++}`;
  const store = new RedisArkosGatewayStore(client, { prefix });
  await store.increment("arkos::rl:s:lasting", 60_000);
  for (let event = 0; event < 2_000; event += 1) {
    await store.increment(`arkos::rl:s:${event}`, 1);
    if (event % 2 === 0) await store.set(`arkos::rl:s:${event}`, 0.001);
  }
  const [key] = await client.keys(`${prefix}/*`);
  assert.ok((await client.hlen(key)) <= 128, `${await client.hlen(key)}`);
  assert.equal((await store.increment("arkos::rl:s:lasting", 60_000)).count, 2);
});

test("it drives a fixed window and ids", async () => {
  const store = storeFrom(fresh());
  const limiter = new Limiter({
    limit: { algorithm: "fixed-window", limit: 3, window: "1m" },
    store,
  });
  const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume("k")));
  assert.equal(decisions.filter(({ allowed }) => allowed).length, 3);
  const ids = new Deduplicator({ ttl: "1m", store });
  assert.deepEqual([await ids.first("id"), await ids.first("id")], [true, false]);
});

test("what is not ours is told, scripts that were flushed are sent again, and a server that hangs is a timeout", async () => {
  const prefix = `p${prefixes++}`;
  const store = new RedisArkosGatewayStore(client, { prefix });
  await client.set(`${prefix}/:l:arkos::rl:s`, "not a hash");
  await assert.rejects(store.increment("arkos::rl:s:e", 1_000), refused("corrupt_state"));
  await client.script("FLUSH");
  assert.equal((await store.increment("arkos::rl:t:e", 60_000)).count, 1);
  server.signal("SIGSTOP");
  await assert.rejects(store.increment("arkos::rl:t:e", 60_000), refused("timeout"));
  server.signal("SIGCONT");
  const { count } = await store.increment("arkos::rl:t:e", 60_000);
  assert.equal(count, 3, "what was not answered in time was counted all the same");
});

test("options and clients that make no sense are told so", () => {
  assert.throws(() => new RedisArkosGatewayStore({}), refused("bad_policy"));
  assert.throws(() => new RedisArkosGatewayStore(client, { prefix: "" }), refused("bad_policy"));
  assert.throws(
    () => new RedisArkosGatewayStore(client, { clock: "store" }),
    refused("bad_policy"),
  );
});

test("on a cluster every socket is on one node, and all of them are served", async () => {
  const servers = await startCluster();
  const cluster = new Cluster(servers.map(({ port }) => ({ host: "127.0.0.1", port })));
  try {
    const store = new RedisArkosGatewayStore(cluster);
    const sockets = Array.from({ length: 60 }, (_, at) => `arkos::rl:socket-${at}`);
    const all = (ask) => Promise.all(sockets.map(ask));
    for (const count of [1, 2]) {
      const counts = await all((key) => store.increment(`${key}:e`, 60_000));
      assert.ok(counts.every((hit) => hit.count === count));
    }
    assert.ok((await all((key) => store.setIfNotExists(`arkos::dedup:${key}`, 60))).every(Boolean));
    await all((key) => store.clear(key));
    const counts = await all((key) => store.increment(`${key}:e`, 60_000));
    assert.ok(counts.every((hit) => hit.count === 1));
  } finally {
    cluster.disconnect();
    await Promise.all(servers.map((one) => one.stop()));
  }
});
