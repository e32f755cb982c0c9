// lease: budget is taken from the shared store in shares, and spent here.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter } from "tidegate";
import { calls, fleetOf, nodesOf, sharedMap, sharedMemory, startRedis } from "./shared.mjs";

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

const stores = { memory: sharedMemory, map: sharedMap, redis: () => redis.shared() };
const algorithms = ["leaky-bucket", "fixed-window", "sliding-window"];

const fleet = (...of) => fleetOf("lease", ...of);

/** Keeps a node busy with a key until it holds a share of it. */
async function hold(limiter, key) {
  let admitted = 0;
  for (;;) {
    const decision = await limiter.consume(key);
    if (decision.allowed) admitted += 1;
    if (decision.local) return admitted;
    assert.equal(decision.allowed, true);
  }
}

for (const [name, shared] of Object.entries(stores)) {
  describe(name, () => {
    for (const algorithm of algorithms) {
      test(`${algorithm}: eight nodes admit no more than the bound allows`, async () => {
        const limit = { limit: 400, window: "1h", algorithm };
        const { nodes, limiters, used } = fleet(8, shared().store, limit);
        const start = performance.now();
        const answers = await Promise.all(
          limiters.map((limiter) => calls(150, () => limiter, "key")),
        );
        const admitted = answers.reduce((sum, answer) => sum + answer.admitted, 0);
        const leaked = Math.ceil(((performance.now() - start) * 400) / 3_600_000);
        const bound = nodes[0].overAdmissionBound(limit, 8);
        const most = algorithm === "leaky-bucket" ? 400 + bound : 400;
        assert.ok(admitted <= most, `${admitted} of ${most}`);
        assert.ok(admitted >= 300, `${admitted} is too few: shares lie about`);
        await Promise.all(nodes.map((node) => node.close()));
        const settled = await used("key");
        assert.ok(Math.abs(settled - admitted) <= leaked, `${settled} charged for ${admitted}`);
      });
    }

    test("under steady load with budget left, 99 % are decided here", async () => {
      const limit = { limit: 1_000_000, window: "1h" };
      const { nodes, limiters } = fleet(1, shared().store, limit);
      const { admitted, local } = await calls(20_000, () => limiters[0], "key");
      assert.equal(admitted, 20_000);
      assert.ok(local >= 19_800, `${local} of 20 000`);
      await nodes[0].close();
    });

    test("what is told is what is left of both, and close gives back what was not spent", async () => {
      const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(2, shared().store, limit);
      const spent = await hold(limiters[0], "key");
      const out = (await used("key")) - spent;
      assert.ok(out > 0 && out <= 100, `${out} units out`);
      const decision = await limiters[0].consume("key");
      assert.deepEqual([decision.local, decision.remaining], [true, 800 - spent - 1]);
      const peeked = await limiters[0].peek("key");
      assert.deepEqual([peeked.local, peeked.remaining], [false, 800 - spent - out]);
      assert.equal((await limiters[1].peek("key")).remaining, peeked.remaining, "out is used");
      await nodes[0].close();
      assert.equal(await used("key"), spent + 1);
      await nodes[0].close();
      assert.equal(await used("key"), spent + 1, "given back once");
    });

    test("shares shrink as the budget runs out", async () => {
      const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit);
      let admitted = 0;
      let out = 0;
      const largest = { early: 0, late: 0 };
      while (admitted < 795) {
        const { allowed } = await limiters[0].consume("key");
        if (!allowed) break;
        admitted += 1;
        out = (await used("key")) - admitted;
        const phase = admitted < 400 ? "early" : admitted > 720 ? "late" : undefined;
        if (phase !== undefined) largest[phase] = Math.max(largest[phase], out);
      }
      assert.ok(largest.early >= 50 && largest.early <= 100, `${largest.early} early`);
      assert.ok(largest.late <= 20, `${largest.late} late`);
      await nodes[0].close();
    });

    test("leaseUnits is the largest share", async () => {
      const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit, { leaseUnits: 5 });
      let admitted = 0;
      for (let at = 0; at < 50; at += 1) {
        admitted += (await limiters[0].consume("key")).allowed ? 1 : 0;
        const out = (await used("key")) - admitted;
        assert.ok(out <= 5, `${out} units out`);
      }
      await nodes[0].close();
    });

    test("a Limiter that is closed gives back its own shares, and leaves the others'", async () => {
      const limit = { limit: 800, window: "1h" };
      const { store } = shared();
      const [node] = nodesOf(1, store, { mode: "lease" });
      const [one, other] = ["one", "other"].map((prefix) => {
        const limiter = new Limiter({ limit, store: node, prefix });
        const direct = new Limiter({ limit, store, prefix });
        return { limiter, used: async () => 800 - (await direct.peek("key")).remaining };
      });
      const [spent, spentToo] = [await hold(one.limiter, "key"), await hold(other.limiter, "key")];
      assert.ok((await one.used()) > spent);
      await one.limiter.close();
      assert.equal(await one.used(), spent);
      assert.ok((await other.used()) > spentToo, "still out");
      assert.equal((await other.limiter.consume("key")).local, true);
      await node.close();
      assert.equal(await other.used(), spentToo + 1);
    });

    test("block and reset of this node's own hold at once", async () => {
      const limit = { limit: 800, window: "1h" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit);
      const [limiter] = limiters;
      await hold(limiter, "key");
      await limiter.block("key", "1h");
      for (const local of [false, true]) {
        const blocked = await limiter.consume("key");
        assert.deepEqual([blocked.reason, blocked.local], ["blocked", local]);
      }
      await limiter.unblock("key");
      assert.equal((await limiter.consume("key")).allowed, true);
      await hold(limiter, "key");
      await limiter.reset("key");
      assert.equal(await used("key"), 0);
      assert.equal((await limiter.consume("key")).allowed, true);
      await nodes[0].close();
      assert.equal(await used("key"), 1, "what was held before the reset is not given back");
    });

    test("another node's block is seen within a second, whatever is held", async () => {
      const limit = { limit: 800, window: "1h" };
      const { nodes, limiters } = fleet(2, shared().store, limit);
      await hold(limiters[0], "key");
      await limiters[1].block("key", "1h");
      const start = performance.now();
      while ((await limiters[0].consume("key")).reason !== "blocked") await pause(20);
      const took = performance.now() - start;
      assert.ok(took <= 1_500, `after ${took} ms`);
      await Promise.all(nodes.map((node) => node.close()));
    });

    test("a key that is asked about now and then is not leased", async () => {
      const limit = { limit: 800, window: "1h" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit);
      for (const key of ["a", "b", "c"]) {
        assert.equal((await limiters[0].consume(key)).local, false);
        assert.equal(await used(key), 1);
      }
      await nodes[0].close();
    });

    test("a share that lies idle goes back by itself", async () => {
      const limit = { limit: 800, window: "1h" };
      const { limiters, used } = fleet(1, shared().store, limit);
      const spent = await hold(limiters[0], "key");
      assert.ok((await used("key")) > spent);
      const start = performance.now();
      while ((await used("key")) > spent) {
        assert.ok(performance.now() - start < 6_000, "still out after 6 s");
        await pause(50);
      }
      assert.equal(await used("key"), spent);
    });

    test("a refund is the shared store's", async () => {
      const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };
      const { nodes, limiters, used } = fleet(1, shared().store, limit);
      const spent = await hold(limiters[0], "key");
      await limiters[0].refund("key", 2);
      await nodes[0].close();
      assert.equal(await used("key"), spent - 2);
    });
  });
}
