// A shared store that goes away: each mode goes on as far as it may, then each policy in its own words.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { Deduplicator, Limiter, onEvent, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { nodesOf, sharedMap, startRedis } from "./shared.mjs";

const rejections = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));

let redis;
before(async () => {
  redis = await startRedis();
});
after(async () => {
  await redis.stop();
  assert.deepEqual(rejections, []);
});

const stores = { map: sharedMap, redis: () => redis.shared() };
const policies = ["deny", "allow", "local", "throw"];
const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };
const timeout = 100;

/** Store errors that are told while the body runs. */
async function errorsDuring(body) {
  const errors = [];
  const end = onEvent((event) => {
    if (event.type === "store-error") errors.push(event.error.code);
  });
  await body();
  end();
  return errors;
}

/** What a call comes to that neither the first tier nor the shared store decides. */
async function assertPolicy(limiter, policy) {
  const call = limiter.consume("key");
  if (policy === "throw") return assert.rejects(call, { code: "store" });
  const { allowed, reason, local } = await call;
  const expected = {
    deny: [false, "store-error"],
    allow: [true, "store-error"],
    local: [true, "ok"],
  };
  assert.deepEqual([allowed, reason], expected[policy]);
  assert.equal(local, policy === "local" || local);
}

/** Asks until the store itself has answered; the breaker lets a call through from time to time. */
async function untilItAnswers(limiter, key) {
  const start = performance.now();
  for (;;) {
    const answer = await limiter.consume(key).catch(() => undefined);
    if (answer?.reason === "ok" && !answer.local) return answer;
    assert.ok(performance.now() - start < 10_000, "it does not come back");
    await pause(5);
  }
}

for (const [name, shared] of Object.entries(stores)) {
  for (const policy of policies) {
    describe(`${name} is down, ${policy}`, () => {
      const make = (mode, options) => {
        const { store, line } = shared();
        const [node] = nodesOf(1, store, { mode, ...options });
        const limiter = new Limiter({ limit, store: node, onStoreError: policy, timeout });
        const direct = new Limiter({ limit, store });
        const used = async () => limit.limit - (await direct.peek("key")).remaining;
        return { line, node, limiter, used };
      };

      test("deny-cache goes on denying what was denied", async () => {
        const { line, node, limiter } = make("deny-cache");
        await limiter.consume("key", { cost: 800 });
        await limiter.consume("key", { cost: 2 });
        line.state = "down";
        const denied = await limiter.consume("key", { cost: 2 });
        assert.deepEqual([denied.reason, denied.local], ["limited", true]);
        const errors = await errorsDuring(() => assertPolicy(limiter, policy));
        assert.deepEqual(errors, ["store"]);
        line.state = "up";
        await untilItAnswers(limiter, "another");
        await node.close();
      });

      test("lease spends what it holds", async () => {
        const { line, node, limiter, used } = make("lease");
        let admitted = 0;
        for (let local = false; !local; admitted += 1) ({ local } = await limiter.consume("key"));
        const held = (await used()) - admitted;
        assert.ok(held > 0);
        line.state = "down";
        const errors = await errorsDuring(async () => {
          for (let at = 0; at < held; at += 1) {
            const { reason, local } = await limiter.consume("key");
            assert.deepEqual([reason, local], ["ok", true], `${at} of ${held}`);
          }
          await assertPolicy(limiter, policy);
        });
        assert.ok(errors.length >= 2, "of asking ahead, and of the call");
        line.state = "up";
        assert.equal(await used(), admitted + held);
        await untilItAnswers(limiter, "another");
        await node.close();
      });

      test("eager goes on up to maxUnsynced, and tells it all afterwards", async () => {
        const options = { maxUnsynced: 6, syncEvery: 20 };
        const { line, node, limiter, used } = make("eager", options);
        await limiter.consume("key");
        line.state = "down";
        const errors = await errorsDuring(async () => {
          for (let at = 0; at < 6; at += 1) {
            const { reason, local } = await limiter.consume("key");
            assert.deepEqual([reason, local], ["ok", true]);
          }
          await assertPolicy(limiter, policy);
          await pause(60);
        });
        assert.ok(errors.length >= 2, "of the call, and of what was to be told");
        line.state = "up";
        await untilItAnswers(limiter, "another");
        await node.close();
        assert.ok((await used()) >= 7, "what was admitted here is known");
        assert.ok((await used()) <= 8, "and counted once");
      });

      test("close ends, and says what it could not do", async () => {
        for (const mode of ["lease", "eager"]) {
          const { line, node, limiter } = make(mode, { syncEvery: "1h" });
          for (let at = 0; at < 5; at += 1) await limiter.consume("key");
          for (const state of ["down", "hung"]) {
            line.state = state;
            const start = performance.now();
            const errors = await errorsDuring(() => node.close());
            assert.ok(performance.now() - start < 10 * timeout, `${mode}, ${state}`);
            if (state === "down") assert.deepEqual(errors, ["store"], `${mode}, ${state}`);
          }
          await limiter.close();
        }
      });
    });
  }

  describe(`${name} loses its answers`, () => {
    test("eager: what was told counts once, however often it is told", async () => {
      const { store, line } = shared();
      const [node] = nodesOf(1, store, { mode: "eager", maxUnsynced: 5, syncEvery: 10 });
      const limiter = new Limiter({ limit, store: node, onStoreError: "deny", timeout });
      let admitted = 0;
      for (let round = 0; round < 10; round += 1) {
        for (let at = 0; at < 5; at += 1) {
          const { allowed } = await limiter.consume("key");
          if (allowed) admitted += 1;
        }
        line.state = round % 2 === 0 ? "lossy" : "up";
        await pause(25);
      }
      line.state = "up";
      await untilItAnswers(limiter, "another");
      await node.close();
      const used = limit.limit - (await new Limiter({ limit, store }).peek("key")).remaining;
      // A call that was decided there and whose answer was lost is charged, and was denied here.
      const lost = 50 - admitted;
      assert.ok(admitted > 10 && used >= admitted && used <= admitted + lost, `${used}`);
    });

    test("lease: a share whose answer was lost is charged, and spent by nobody", async () => {
      const { store, line } = shared();
      const [node] = nodesOf(1, store, { mode: "lease" });
      const limiter = new Limiter({ limit, store: node, onStoreError: "deny", timeout });
      let admitted = 0;
      for (let at = 0; at < 300; at += 1) {
        line.state = at % 3 === 0 ? "lossy" : "up";
        if ((await limiter.consume("key")).allowed) admitted += 1;
      }
      line.state = "up";
      await untilItAnswers(limiter, "another");
      await node.close();
      const used = limit.limit - (await new Limiter({ limit, store }).peek("key")).remaining;
      assert.ok(admitted > 0 && used >= admitted && used <= 800, `${admitted} of ${used}`);
    });

    test("what was given back and not answered is given back once", async () => {
      const { store, line } = shared();
      const [node] = nodesOf(1, store, { mode: "lease" });
      const limiter = new Limiter({ limit, store: node, timeout });
      let admitted = 0;
      for (let local = false; !local; admitted += 1) ({ local } = await limiter.consume("key"));
      line.state = "lossy";
      await node.close();
      line.state = "up";
      await node.close();
      await limiter.close();
      const used = limit.limit - (await new Limiter({ limit, store }).peek("key")).remaining;
      assert.equal(used, admitted);
    });
  });
}

for (const mode of ["deny-cache", "lease", "eager"]) {
  test(`${mode}: a server that hangs is waited for once, left alone, and asked again`, async () => {
    const client = new Redis(redis.server.port, { retryStrategy: () => 20 });
    client.on("error", () => {});
    const l2 = new RedisStore(client, { prefix: `hang-${mode}` });
    const store = new TieredStore({ l2, mode, maxUnsynced: 4, syncEvery: 20 });
    const limiter = new Limiter({ limit, store, onStoreError: "deny", timeout });
    for (let at = 0; at < 5; at += 1) await limiter.consume("key");
    const direct = new Limiter({ limit, store: l2, timeout: "5s" });
    redis.server.signal("SIGSTOP");
    const start = performance.now();
    const errors = await errorsDuring(async () => {
      const reasons = new Set();
      for (let at = 0; at < 200; at += 1) {
        reasons.add((await limiter.consume(at % 2 === 0 ? "key" : `other ${at}`)).reason);
      }
      assert.ok(reasons.has("timeout"), [...reasons].join());
    });
    const took = performance.now() - start;
    assert.ok(took < 3_000, `200 calls took ${took} ms`);
    assert.ok(errors.includes("timeout"));
    redis.server.signal("SIGCONT");
    await untilItAnswers(limiter, "after");
    await store.close();
    assert.ok((await direct.peek("key")).remaining <= limit.limit - 5);
    client.disconnect();
  });
}

test("what close could not tell is told with what comes next", async () => {
  const { store: l2, line } = sharedMap();
  const [node] = nodesOf(1, l2, { mode: "eager", maxUnsynced: 8, syncEvery: 20 });
  const limiter = new Limiter({ limit, store: node, timeout });
  const direct = new Limiter({ limit, store: l2 });
  for (let at = 0; at < 4; at += 1) await limiter.consume("key");
  line.state = "down";
  await node.close();
  line.state = "up";
  assert.ok((await direct.peek("key")).remaining > limit.limit - 4);
  assert.equal((await limiter.consume("key")).local, true);
  const start = performance.now();
  while ((await direct.peek("key")).remaining !== limit.limit - 5) {
    assert.ok(performance.now() - start < 1_000, "never told");
    await pause(10);
  }
  await node.close();
});

test("ids whose answers never come do not fill the table", async () => {
  const { store: l2, line } = sharedMap();
  const store = new TieredStore({ l2, maxKeys: 4 });
  const dedup = new Deduplicator({ ttl: "1h", store, timeout: 20, onStoreError: "deny" });
  line.state = "hung";
  await Promise.all(Array.from({ length: 8 }, (_, at) => dedup.first(`hung ${at}`)));
  line.state = "up";
  await pause(30);
  const patient = new Deduplicator({ ttl: "1h", store, prefix: "patient" });
  assert.equal(await patient.first("id"), true);
  const before = line.operations;
  assert.equal(await patient.first("id"), false);
  assert.equal(line.operations, before, "known here");
});

test("keys whose answers never come do not fill the table", async () => {
  const { store: l2, line } = sharedMap();
  const [node] = nodesOf(1, l2, { maxKeys: 4 });
  const limiter = new Limiter({ limit, store: node, timeout: 20, onStoreError: "deny" });
  line.state = "hung";
  await Promise.all(Array.from({ length: 8 }, (_, at) => limiter.consume(`hung ${at}`)));
  line.state = "up";
  await pause(30);
  const patient = new Limiter({ limit, store: node, prefix: "patient" });
  await patient.consume("key", { cost: 800 });
  assert.equal((await patient.consume("key")).local, false);
  assert.equal((await patient.consume("key")).local, true);
});

test("a call that was given up charges nothing afterwards", async () => {
  const { store: l2, line } = sharedMap();
  const [node] = nodesOf(1, l2, { mode: "eager", maxUnsynced: 2, syncEvery: "1h" });
  const limiter = new Limiter({ limit, store: node, timeout: 40, onStoreError: "deny" });
  await limiter.consume("key");
  line.state = "hung";
  const reasons = await Promise.all(
    Array.from({ length: 20 }, async () => (await limiter.consume("key")).reason),
  );
  line.state = "up";
  assert.equal(reasons.filter((reason) => reason === "ok").length, 2);
  await pause(200);
  await node.close();
  const used = limit.limit - (await new Limiter({ limit, store: l2 }).peek("key")).remaining;
  assert.equal(used, 3);
});
