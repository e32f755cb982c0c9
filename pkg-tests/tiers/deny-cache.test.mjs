// deny-cache: the shared store decides; only its denials are remembered, and not for long.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter } from "tidegate";
import { calls, nodesOf, sharedMap, sharedMemory, startRedis } from "./shared.mjs";

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

const stores = { memory: sharedMemory, map: sharedMap, redis: () => redis.shared() };
const counted = { map: stores.map, redis: stores.redis };
const limit = { limit: 10, window: "1h" };

for (const [name, shared] of Object.entries(counted)) {
  describe(name, () => {
    test("a flood of denied calls costs less than one operation per thousand", async () => {
      for (const algorithm of ["leaky-bucket", "fixed-window", "sliding-window"]) {
        const { store, line } = shared();
        const [node] = nodesOf(1, store);
        const limiter = new Limiter({ limit: { ...limit, algorithm }, store: node });
        assert.deepEqual(await calls(10, () => limiter, "key"), { admitted: 10, local: 0 });
        const before = line.operations;
        const denials = 20_000;
        const { admitted, local } = await calls(denials, () => limiter, "key");
        const operations = line.operations - before;
        assert.equal(admitted, 0);
        assert.equal(local, denials - operations, "local is what was decided without the store");
        assert.ok(operations >= 1 && operations < denials / 1_000, `${operations} operations`);
      }
    });

    test("what costs more or less than what was denied is asked, and then remembered too", async () => {
      const { store, line } = shared();
      const [node] = nodesOf(1, store);
      const limiter = new Limiter({ limit, store: node });
      await limiter.consume("key", { cost: 8 });
      const waits = [];
      for (const cost of [5, 6, 3, 4]) {
        const before = line.operations;
        const first = await limiter.consume("key", { cost });
        const again = await limiter.consume("key", { cost });
        assert.deepEqual([first.local, again.local], [false, true]);
        assert.equal(line.operations - before, 1);
        waits[cost] = first.retryAfterMs;
      }
      const before = line.operations;
      for (const cost of [3, 4, 5, 6]) {
        const { retryAfterMs, local } = await limiter.consume("key", { cost });
        assert.equal(local, true);
        assert.ok(Math.abs(retryAfterMs - waits[cost]) < 1_000, "each has its own wait");
      }
      assert.equal(line.operations, before);
      const cheaper = await limiter.consume("key", { cost: 2 });
      assert.deepEqual([cheaper.allowed, cheaper.local], [true, false]);
    });
  });
}

for (const [name, shared] of Object.entries(stores)) {
  describe(name, () => {
    test("a denial that is repeated is the store's own, and its wait runs down", async () => {
      const [node] = nodesOf(1, shared().store);
      const limiter = new Limiter({ limit, store: node });
      await limiter.consume("key", { cost: 10 });
      const first = await limiter.consume("key");
      const again = await limiter.consume("key");
      assert.deepEqual([first.local, again.local], [false, true]);
      const { local: _, retryAfterMs, resetAfterMs, ...same } = again;
      const { retryAfterMs: wait, resetAfterMs: reset } = first;
      assert.deepEqual({ ...first, ...same, local: false }, first);
      assert.ok(retryAfterMs <= wait && retryAfterMs > wait - 1_000, `${retryAfterMs} of ${wait}`);
      assert.equal(wait - retryAfterMs, reset - resetAfterMs);
    });

    test("a cheaper call that is admitted makes the denied one wait for longer", async () => {
      const [node] = nodesOf(1, shared().store);
      const limiter = new Limiter({ limit, store: node });
      await limiter.consume("key", { cost: 6 });
      const before = await limiter.consume("key", { cost: 8 });
      await limiter.consume("key", { cost: 4 });
      const after = await limiter.consume("key", { cost: 8 });
      const more = after.retryAfterMs - before.retryAfterMs;
      assert.ok(more > 23 * 60_000 && more <= 24 * 60_000, `${more} ms longer`);
    });

    test("never is for ever, and no cheaper call is taken for it", async () => {
      const [node] = nodesOf(1, shared().store);
      const limiter = new Limiter({ limit, store: node });
      for (const local of [false, true]) {
        const never = await limiter.consume("key", { cost: 11 });
        assert.deepEqual(
          [never.reason, never.retryAfterMs, never.local],
          ["never", Number.POSITIVE_INFINITY, local],
        );
      }
      assert.equal((await limiter.consume("key", { cost: 10 })).allowed, true);
      // What was only limited says nothing of what can never fit.
      assert.equal((await limiter.consume("key", { cost: 1 })).reason, "limited");
      assert.equal((await limiter.consume("key", { cost: 11 })).reason, "never");
    });

    test("this node's own refund, reset and unblock are seen at once", async () => {
      const [node] = nodesOf(1, shared().store);
      const limiter = new Limiter({ limit, store: node });
      const denied = async () => {
        await limiter.consume("key");
        assert.equal((await limiter.consume("key")).local, true);
      };
      await limiter.consume("key", { cost: 10 });
      await denied();
      await limiter.refund("key", 1);
      assert.equal((await limiter.consume("key")).allowed, true);
      await denied();
      const refunded = limiter.refund("key", 1);
      assert.equal((await limiter.consume("key")).local, false, "as soon as it is asked for");
      await refunded;
      await limiter.reset("key");
      assert.equal((await limiter.consume("key")).remaining, 9);
      await limiter.block("key", "1h");
      await denied();
      await limiter.unblock("key");
      assert.equal((await limiter.consume("key")).remaining, 8);
    });

    test("and those of another Limiter with the same prefix", async () => {
      const [node] = nodesOf(1, shared().store);
      const [one, other] = [1, 2].map(() => new Limiter({ limit, store: node, prefix: "shared" }));
      const stranger = new Limiter({ limit, store: node, prefix: "other" });
      await one.consume("key", { cost: 10 });
      for (const change of [() => other.refund("key", 1), () => other.reset("key")]) {
        await one.consume("key");
        await stranger.reset("key");
        assert.equal((await one.consume("key")).local, true, "another prefix changes nothing");
        await change();
        assert.equal((await one.consume("key")).allowed, true);
        await one.consume("key", { cost: 9 });
      }
      await other.block("key", "1h");
      assert.equal((await one.consume("key")).reason, "blocked");
      await other.unblock("key");
      assert.equal((await one.consume("key", { cost: 20 })).reason, "never");
    });

    test("a limit that was raised asks anew", async () => {
      const [node] = nodesOf(1, shared().store);
      const limiter = new Limiter({ limit, store: node });
      await limiter.consume("key", { cost: 10 });
      await limiter.consume("key");
      const raised = new Limiter({ limit: { ...limit, limit: 20 }, store: node });
      assert.equal((await raised.consume("key")).allowed, true);
    });

    test("another node's reset is seen within a second", async () => {
      const nodes = nodesOf(2, shared().store);
      const [one, other] = nodes.map((store) => new Limiter({ limit, store }));
      await one.consume("key", { cost: 10 });
      await one.consume("key");
      const start = performance.now();
      await other.reset("key");
      let decision = await one.consume("key");
      assert.equal(decision.local, true, "not yet");
      while (!decision.allowed) {
        await pause(5);
        decision = await one.consume("key");
      }
      const took = performance.now() - start;
      assert.ok(took <= 1_500, `after ${took} ms`);
    });

    test("eight nodes at once admit the limit and no more", async () => {
      const limiters = nodesOf(8, shared().store).map(
        (store) => new Limiter({ limit: { limit: 100, window: "1h" }, store, timeout: "10s" }),
      );
      const decisions = await Promise.all(
        Array.from({ length: 200 }, (_, at) => limiters[at % 8].consume("key")),
      ).catch((error) => assert.fail(error));
      const admitted = decisions.filter(({ allowed }) => allowed).length;
      assert.equal(admitted, 100);
    });
  });
}
