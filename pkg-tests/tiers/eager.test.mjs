// eager: this process decides at once, and the shared store is told behind it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { calls, fleetOf, sharedMap, sharedMemory, startRedis } from "./shared.mjs";

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

const stores = { memory: sharedMemory, map: sharedMap, redis: () => redis.shared() };
const algorithms = ["leaky-bucket", "fixed-window", "sliding-window"];

const fleet = (...of) => fleetOf("eager", ...of);

for (const [name, shared] of Object.entries(stores)) {
  describe(name, () => {
    for (const algorithm of algorithms) {
      test(`${algorithm}: never more than maxUnsynced units behind`, async () => {
        const limit = { limit: 1_000, window: "1h", algorithm };
        const options = { maxUnsynced: 7, syncEvery: "1h" };
        const { nodes, limiters, used } = fleet(1, shared().store, limit, options);
        let admitted = 0;
        let [least, most] = [Infinity, 0];
        for (let at = 0; at < 100; at += 1) {
          const decision = await limiters[0].consume("key", { cost: 1 + (at % 3) });
          if (decision.allowed) admitted += 1 + (at % 3);
          const behind = admitted - (await used("key"));
          [least, most] = [Math.min(least, behind), Math.max(most, behind)];
        }
        assert.deepEqual([least, most], [0, 7]);
        await nodes[0].close();
        assert.equal(await used("key"), admitted, "close tells the rest");
      });

      test(`${algorithm}: eight nodes admit no more than the bound allows`, async () => {
        const limit = { limit: 200, window: "1h", algorithm };
        const { nodes, limiters, used } = fleet(8, shared().store, limit, { maxUnsynced: 5 });
        const answers = await Promise.all(
          limiters.map((limiter) => calls(100, () => limiter, "key")),
        );
        const admitted = answers.reduce((sum, answer) => sum + answer.admitted, 0);
        const bound = nodes[0].overAdmissionBound(limit, 8);
        assert.equal(bound, 35);
        assert.ok(admitted >= 200 && admitted <= 200 + bound, `${admitted} admitted`);
        await Promise.all(nodes.map((node) => node.close()));
        assert.equal(await used("key"), 200);
      });
    }

    test("the first call asks, the next are decided here", async () => {
      const limit = { limit: 100, window: "1h" };
      const { nodes, limiters } = fleet(1, shared().store, limit);
      const first = await limiters[0].consume("key");
      const next = await limiters[0].consume("key");
      assert.deepEqual([first.local, first.remaining], [false, 99]);
      assert.deepEqual([next.local, next.remaining], [true, 98]);
      await nodes[0].close();
    });

    test("a cost above maxUnsynced goes to the shared store at once, with all before it", async () => {
      const limit = { limit: 100, window: "1h" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit, { syncEvery: "1h" });
      await limiters[0].consume("key");
      for (let at = 0; at < 4; at += 1) await limiters[0].consume("key");
      assert.equal(await used("key"), 1);
      const decision = await limiters[0].consume("key", { cost: 11 });
      assert.deepEqual([decision.local, decision.remaining], [false, 84]);
      assert.equal(await used("key"), 16);
      await nodes[0].close();
    });

    test("the shared store knows within syncEvery", async () => {
      const limit = { limit: 100, window: "1h" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit, { syncEvery: 60 });
      await limiters[0].consume("key");
      for (let at = 0; at < 5; at += 1) await limiters[0].consume("key");
      assert.equal(await used("key"), 1);
      const start = performance.now();
      while ((await used("key")) < 6) await pause(2);
      const took = performance.now() - start;
      assert.ok(took <= 500, `after ${took} ms`);
      await nodes[0].close();
    });

    test("counts of other nodes come back with what is told", async () => {
      const limit = { limit: 100, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters } = fleet(2, shared().store, limit, { maxUnsynced: 20 });
      await limiters[0].consume("key");
      await limiters[1].consume("key", { cost: 50 });
      await limiters[0].consume("key", { cost: 5 });
      await limiters[0].peek("key");
      const decision = await limiters[0].consume("key");
      assert.deepEqual([decision.local, decision.remaining], [true, 43]);
      await Promise.all(nodes.map((node) => node.close()));
    });

    test("peek sees what this node has not told yet", async () => {
      const limit = { limit: 100, window: "1h" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit, { syncEvery: "1h" });
      for (let at = 0; at < 6; at += 1) await limiters[0].consume("key");
      assert.equal(await used("key"), 1);
      assert.equal((await limiters[0].peek("key")).remaining, 94);
      assert.equal(await used("key"), 6);
      await nodes[0].close();
    });

    test("block, reset and refund of this node's own hold at once", async () => {
      const limit = { limit: 100, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit, { syncEvery: "1h" });
      const [limiter] = limiters;
      for (let at = 0; at < 5; at += 1) await limiter.consume("key");
      await limiter.refund("key", 2);
      assert.equal(await used("key"), 3, "told first, then given back");
      assert.equal((await limiter.consume("key")).remaining, 96);
      await limiter.block("key", "1h");
      for (const local of [false, true]) {
        const blocked = await limiter.consume("key");
        assert.deepEqual([blocked.reason, blocked.local], ["blocked", local]);
      }
      await limiter.unblock("key");
      assert.equal((await limiter.consume("key")).remaining, 95);
      await limiter.consume("key");
      await limiter.reset("key");
      assert.equal((await limiter.consume("key")).remaining, 99);
      await nodes[0].close();
      assert.equal(await used("key"), 1, "nothing from before the reset is told after it");
    });

    test("a denial is this node's own for a second, then the shared store is asked", async () => {
      const limit = { limit: 20, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters } = fleet(2, shared().store, limit);
      await limiters[0].consume("key", { cost: 20 });
      assert.equal((await limiters[0].consume("key")).reason, "limited");
      await limiters[1].reset("key");
      const start = performance.now();
      while (!(await limiters[0].consume("key")).allowed) await pause(10);
      const took = performance.now() - start;
      assert.ok(took <= 1_500, `after ${took} ms`);
      await Promise.all(nodes.map((node) => node.close()));
    });

    test("calls at once that ask all come to an end, within the limit", async () => {
      const limit = { limit: 300, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(2, shared().store, limit, { maxUnsynced: 4 });
      const decisions = await Promise.all(
        Array.from({ length: 200 }, (_, at) =>
          limiters[at % 2].consume("key", { cost: 1 + (at % 6) }),
        ),
      );
      const units = decisions.reduce(
        (sum, { allowed }, at) => sum + (allowed ? 1 + (at % 6) : 0),
        0,
      );
      assert.ok(units >= 295 && units <= 304, `${units} units`);
      await Promise.all(nodes.map((node) => node.close()));
      assert.ok((await used("key")) >= Math.min(units, 300));
    });
  });
}
