// A single server that hangs, dies, fills up or is demoted: every decision by its own policy, and service resumes by itself.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { Deduplicator, Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { disconnect, single } from "../redis/clients.mjs";
import { KINDS, Server, until } from "../redis/servers.mjs";
import { Wire } from "../redis/wire.mjs";
import { countsHold, everythingEnds, Load, nothingUnhandled } from "./load.mjs";

nothingUnhandled();

const LIMIT = 1_000;
const DURABLE = ["--appendonly", "yes", "--appendfsync", "always"];
const limit = { algorithm: "fixed-window", limit: LIMIT, window: "1h" };
const keys = ["a", "b", "c", "d"];

for (const kind of KINDS) {
  describe(kind, () => {
    let server;
    let client;

    before(async () => {
      server = await Server.start(DURABLE, `${kind}-server`);
      client = await single.ioredis(server.port);
    });

    after(async () => {
      disconnect(client);
      await everythingEnds(server);
      await server.stop();
    });

    const make = (prefix, onStoreError, timeout = 100) =>
      new Limiter({ limit, store: new RedisStore(client, { prefix }), onStoreError, timeout });

    /** Breaks and mends the server under load; answers what the callers were told. */
    async function under(prefix, breaks, mends) {
      const load = new Load(make(prefix, "deny"), keys);
      await until("the load is on", () => load.admitted() > 200);
      await breaks();
      await until("calls fail", () => load.failures.length > 100);
      await mends();
      const mended = load.decisions.length;
      await until("the budgets are spent", () => load.isSpent(mended));
      await load.stop();
      return load;
    }

    test("hangs: each policy in its own words, then service resumes", async () => {
      const limiters = ["deny", "allow", "local", "throw"].map((policy) => make("hang", policy));
      for (const limiter of limiters) await limiter.consume("warm");
      server.signal("SIGSTOP");
      const [deny, allow, local, thrown] = await Promise.allSettled(
        limiters.map((limiter) => limiter.consume("key")),
      );
      server.signal("SIGCONT");
      assert.deepEqual([deny.value.reason, deny.value.allowed], ["timeout", false]);
      assert.ok(deny.value.retryAfterMs > 0 && Number.isFinite(deny.value.retryAfterMs));
      assert.deepEqual(
        [allow.value.reason, allow.value.allowed, allow.value.retryAfterMs],
        ["timeout", true, 0],
      );
      const { reason, remaining } = local.value;
      assert.deepEqual([reason, local.value.local, remaining], ["ok", true, LIMIT - 1]);
      assert.equal(thrown.reason.code, "timeout");
      const { remaining: left } = await limiters[0].peek("key");
      assert.equal(left, LIMIT - 4, "what was sent in time was charged once, when the server woke");
    });

    test("hangs for long: after five failures it is left alone", async () => {
      const limiter = make("left alone", "deny");
      await limiter.consume("warm");
      server.signal("SIGSTOP");
      for (let failure = 0; failure < 5; failure += 1) await limiter.consume("key");
      const start = performance.now();
      for (let call = 0; call < 100; call += 1) {
        assert.equal((await limiter.consume("key")).reason, "timeout");
      }
      assert.ok(performance.now() - start < 2_000, "a hundred calls in less than twenty timeouts");
      server.signal("SIGCONT");
      await until("it is asked again", async () => (await limiter.consume("warm")).reason === "ok");
      assert.equal((await limiter.peek("key")).remaining, LIMIT - 5);
    });

    test("hangs under load, and is found again when it wakes", async () => {
      const load = await under(
        "hang under load",
        () => server.signal("SIGSTOP"),
        () => server.signal("SIGCONT"),
      );
      countsHold(load, LIMIT);
    });

    test("is killed and restarted under load: what was admitted stays admitted", async () => {
      const load = await under(
        "kill",
        () => server.kill(),
        () => server.restart(),
      );
      countsHold(load, LIMIT);
      const store = new RedisStore(client, { prefix: "after" });
      const dedup = new Deduplicator({ ttl: "1h", store, timeout: "5s" });
      assert.deepEqual([await dedup.first("id"), await dedup.first("id")], [true, false]);
    });

    test("is away, and the client keeps nothing for later: calls fail at once, and charge nothing", async () => {
      const client = new Redis(server.port, { enableOfflineQueue: false, retryStrategy: () => 20 });
      client.on("error", () => {});
      await until("it is connected", () => client.status === "ready");
      const store = new RedisStore(client, { prefix: "at once" });
      const limiter = new Limiter({ limit, store, onStoreError: "deny", timeout: "20s" });
      assert.equal((await limiter.consume("key")).remaining, LIMIT - 1);
      await server.kill();
      assert.equal((await limiter.consume("key")).reason, "store-error");
      await server.restart();
      let decision;
      await until("it answers", async () => {
        decision = await limiter.consume("key");
        return decision.reason === "ok";
      });
      assert.equal(decision.remaining, LIMIT - 2);
      client.disconnect();
    });

    test("forgets its scripts between calls: nobody notices", async () => {
      const load = new Load(make("flush", "throw", "5s"), keys);
      while (!load.isSpent()) await server.ask("SCRIPT", "FLUSH");
      await load.stop();
      for (const key of keys) assert.equal(load.admitted(key), LIMIT);
    });

    test("is full: a store error that says so, until there is room", async () => {
      const limiter = make("full", "throw");
      await server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
      await assert.rejects(limiter.consume("key"), { code: "store", message: /OOM/ });
      await server.ask("CONFIG", "SET", "maxmemory", "0");
      assert.equal((await limiter.consume("key")).remaining, LIMIT - 1, "nothing was charged");
    });

    test("is made a replica: a store error that says so, until it is a master again", async () => {
      const limiter = make("replica", "throw");
      await limiter.consume("key");
      await server.ask("REPLICAOF", "127.0.0.1", "1");
      await assert.rejects(limiter.consume("key"), { code: "store", message: /READONLY/ });
      await server.ask("REPLICAOF", "NO", "ONE");
      assert.equal((await limiter.consume("key")).remaining, LIMIT - 2, "nothing was charged");
    });

    test("is replaced behind its address: READONLY reaches the client, which may reconnect", async () => {
      const other = await Server.start([], `${kind}-server`);
      const wire = await Wire.start(server.port);
      const reconnectOnError = ({ message }) => message.startsWith("READONLY");
      const client = new Redis(wire.port, { reconnectOnError });
      const store = new RedisStore(client, { prefix: "replaced" });
      const limiter = new Limiter({ limit, store, onStoreError: "deny", timeout: "5s" });
      assert.equal((await limiter.consume("key")).reason, "ok");
      wire.target = other.port;
      await server.ask("REPLICAOF", "127.0.0.1", String(other.port));
      assert.equal((await limiter.consume("key")).reason, "store-error");
      assert.equal((await limiter.consume("key")).reason, "ok");
      await everythingEnds(other);
      await server.ask("REPLICAOF", "NO", "ONE");
      client.disconnect();
      await wire.stop();
      await other.stop();
    });

    test("is loading: a store error that says so, until it has loaded", async () => {
      const slowly = ["--key-load-delay", "300", "--loading-process-events-interval-bytes", "1024"];
      const slow = await Server.start([...DURABLE, ...slowly], `${kind}-server`);
      const client = await single["node-redis"](slow.port);
      const store = new RedisStore(client, { cluster: false });
      const limiter = new Limiter({ limit, store, timeout: "5s" });
      await Promise.all(Array.from({ length: 2_000 }, (_, at) => limiter.consume(`key ${at}`)));
      await slow.kill();
      slow.launch();
      await until("it says that it loads", async () => {
        const failure = await limiter.consume("key 0").catch((error) => error);
        return failure.code === "store" && failure.message.includes("LOADING");
      });
      await slow.answers();
      const remaining = async () => (await limiter.consume("key 0").catch(() => ({}))).remaining;
      await until("it is asked again", async () => (await remaining()) === LIMIT - 2);
      disconnect(client);
      await everythingEnds(slow);
      await slow.stop();
    });
  });
}
