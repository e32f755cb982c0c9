// The index beside the table, at the sizes at which it changes its shape.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter } from "tidegate";
import { frozenStore } from "./clock.mjs";

test("two hundred thousand keys keep their own budgets while the index grows and forgets", () => {
  const { clock, store } = frozenStore();
  const limiter = new Limiter({ limit: { limit: 2, window: "1m" }, store });
  const count = 200_000;
  for (let n = 0; n < count; n += 1) {
    assert.equal(limiter.consumeSync(`key ${n}`).remaining, 1, `key ${n}`);
    // A key from before, wherever it has moved to.
    if (n % 7 === 0) assert.equal(limiter.consumeSync(`key ${n / 7}`).remaining, 0, `key ${n / 7}`);
  }
  assert.equal(store.size, count);
  clock.ms += 120_000;
  for (let n = 0; n < count; n += 1) limiter.consumeSync(`other ${n}`);
  assert.ok(store.size < 2 * count, "what is whole makes room");
});

test("a peek at a full store answers what consume would", async () => {
  for (const onFull of ["deny", "share"]) {
    const { store } = frozenStore({ maxKeys: 1, onFull });
    const limiter = new Limiter({ limit: { limit: 1, window: "1m" }, store });
    limiter.consumeSync("known");
    for (let call = 0; call < 2; call += 1) {
      const { allowed, reason, retryAfterMs } = await limiter.peek("new");
      const decision = limiter.consumeSync("new");
      assert.deepEqual(
        [allowed, reason, retryAfterMs],
        [decision.allowed, decision.reason, decision.retryAfterMs],
        onFull,
      );
    }
  }
});
