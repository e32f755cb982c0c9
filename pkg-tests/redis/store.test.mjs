// RedisStore on real single servers, over each client.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BurstDetector, Deduplicator, Limiter } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { disconnect, single } from "./clients.mjs";
import { KINDS, Server } from "./servers.mjs";

let prefixes = 0;
const fresh = (client, options) => new RedisStore(client, { prefix: `p${prefixes++}`, ...options });

/** A user for whom a server refuses TIME, as some hosts do for all. */
const WITHOUT_TIME = ["on", "nopass", "~*", "+@all", "-time"];

for (const kind of KINDS) {
  describe(kind, () => {
    const clients = {};
    let server;

    before(async () => {
      server = await Server.start([], `${kind}-server`);
      for (const [name, connect] of Object.entries(single)) {
        clients[name] = await connect(server.port);
      }
      const { ioredis } = clients;
      clients["one function"] = {
        evalScript: (script, _sha, keys, args) =>
          ioredis.eval(script, keys.length, ...keys, ...args),
      };
    });

    after(async () => {
      for (const name of Object.keys(single)) disconnect(clients[name]);
      await server.stop();
    });

    for (const name of [...Object.keys(single), "one function"]) {
      describe(`conformance over ${name}`, () => {
        storeConformance(test, () => fresh(clients[name]));
      });
    }

    describe("where TIME is refused", () => {
      let client;
      before(async () => {
        await server.ask("ACL", "SETUSER", "timeless", ...WITHOUT_TIME);
        client = await single.ioredis(server.port);
        await client.auth("timeless", "any");
      });
      after(() => disconnect(client));

      test("the server's clock cannot be had, and the error says so", async () => {
        const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, store: fresh(client) });
        const message = /(run this|the 'time') command/;
        await assert.rejects(limiter.consume("key"), { code: "store", message });
      });

      describe("conformance on callers' clocks", () => {
        storeConformance(test, () => fresh(client, { clock: "caller" }));
      });
    });

    test("no key is ever without a time to live, and one that somebody left so is healed", async () => {
      const client = clients.ioredis;
      await client.flushall();
      const store = fresh(client);
      const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, store });
      const dedup = new Deduplicator({ ttl: "1h", store });
      await limiter.consume("a");
      await limiter.refund("a", 1);
      await limiter.consume("a");
      await limiter.block("b", "1h");
      await dedup.first("c");
      const claim = await dedup.claim("d");
      await claim.commit("done");
      await (await dedup.claim("e")).release();
      await new BurstDetector({ threshold: 2, window: "1h", store }).observe("f");
      const keys = await client.keys("*");
      assert.equal(keys.length, 5);
      for (const key of keys) assert.ok((await client.pttl(key)) > 0, key);

      const key = keys.find((key) => key.endsWith(":l:a"));
      await client.persist(key);
      assert.equal((await limiter.consume("a")).allowed, false);
      assert.ok((await client.pttl(key)) > 0, "healed by a denial");
    });

    test("a key of another type fails alone, and scripts that were flushed are sent again", async () => {
      const client = clients.ioredis;
      const store = fresh(client, { prefix: "typed", cluster: false });
      const limiter = new Limiter({ limit: { limit: 9, window: "1h" }, store });
      await client.lpush("typed/tg:l:list", "x");
      await client.set("typed/tg:l:text", "not ours");
      await client.script("FLUSH");
      const answers = await Promise.allSettled(
        ["a", "list", "b", "text"].map((key) => limiter.consume(key)),
      );
      assert.deepEqual(
        answers.map(({ status, reason }) => (status === "fulfilled" ? "ok" : reason.code)),
        ["ok", "corrupt_state", "ok", "corrupt_state"],
      );
    });
  });
}

test("a client of no known shape is named, and options are checked", () => {
  for (const client of [undefined, null, {}, { get() {} }, "redis://"]) {
    assert.throws(() => new RedisStore(client), { code: "bad_policy", message: /evalScript/ });
  }
  const client = { evalScript: async () => [] };
  for (const [options, name] of [
    [{ maxBatch: 0 }, "maxBatch"],
    [{ clock: "server" }, "clock"],
    [{ cluster: 1 }, "cluster"],
    [{ prefix: "" }, "prefix"],
    [{ batch: 1 }, "batch"],
  ]) {
    const made = () => new RedisStore(client, options);
    assert.throws(made, (error) => error.code === "bad_policy" && error.message.includes(name));
  }
  assert.equal(new RedisStore(client, { clock: "caller" }).capabilities.clock, "caller");
});
