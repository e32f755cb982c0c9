// deny-cache is as exact as what is behind it: the same suite, and the same vectors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Limiter, storeFrom, TieredStore } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { frozenTable } from "../core/clock.mjs";
import { sharedMap, sharedMemory, startRedis } from "./shared.mjs";

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

const stores = { memory: sharedMemory, map: sharedMap, redis: () => redis.shared() };

for (const [name, shared] of Object.entries(stores)) {
  describe(name, () => {
    storeConformance(test, () => new TieredStore({ l2: shared().store }));
  });
}

const { sequences } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../vectors/decisions.json"), "utf8"),
);

test("what is not remembered is decided as the vectors say", async () => {
  for (const [number, { limits, steps }] of sequences.entries()) {
    const { clock, adapter } = frozenTable();
    for (const [index, step] of steps.entries()) {
      clock.ms = step.at;
      // A node of its own for each step: this process's clock does not move with the store's.
      const store = new TieredStore({ l2: storeFrom(adapter), maxKeys: 2 });
      const limiter = new Limiter({ limit: limits, store });
      const start = performance.now();
      const decision = await limiter[step.op]("key", { cost: step.cost });
      const retryAfterMs = step.expect.retryAfterMs ?? Number.POSITIVE_INFINITY;
      const expected = { ...step.expect, retryAfterMs, local: false, dryRun: false };
      assert.deepEqual(decision, expected, `sequence ${number}, step ${index}`);
      if (step.op === "consume" && !decision.allowed && retryAfterMs > 100) {
        const again = await limiter.consume("key", { cost: step.cost });
        // On a machine that was away for long the denial may be over.
        if (performance.now() - start > 100) continue;
        const since = decision.resetAfterMs - again.resetAfterMs;
        assert.ok(since >= 0 && since <= 101, `${since} ms`);
        const waited = { retryAfterMs: retryAfterMs - since, resetAfterMs: again.resetAfterMs };
        assert.deepEqual(again, { ...expected, ...waited, local: true });
      }
    }
  }
});
