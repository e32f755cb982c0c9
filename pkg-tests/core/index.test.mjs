// The index beside the table, at the sizes at which it changes its shape.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Deduplicator, Limiter } from "tidegate";
import { frozenStore } from "./clock.mjs";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

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

test("keys of several prefixes side by side are each forgotten in their own", async () => {
  const { store } = frozenStore();
  const limiters = ["a", "b", "c"].map(
    (prefix) => new Limiter({ limit: { limit: 9, window: "1m" }, store, prefix }),
  );
  const used = limiters.map((limiter) => 9 - limiter.consumeSync("key").remaining);
  for (const [at, limiter] of limiters.entries()) {
    await limiter.reset("key");
    used[at] = 0;
    for (const [other, one] of limiters.entries()) {
      used[other] += 1;
      assert.equal(one.consumeSync("key").remaining, 9 - used[other], `${other} after ${at}`);
    }
  }
  assert.equal(store.size, limiters.length);
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

test("senders who come once leave nothing behind when their ids are over", async () => {
  const { clock, store } = frozenStore({ maxKeys: 1_000 });
  const dedup = new Deduplicator({ ttl: 10, lease: 10, store });
  const come = async (from, to) => {
    for (let n = from; n < to; n += 1) {
      if (n % 10 === 0) clock.ms += 1;
      await (await dedup.claimFor(`sender ${n}`, `sender ${n}: its only message`)).keep();
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = await come(0, 20_000);
  const after = await come(20_000, 120_000);
  assert.ok(after - before < 10e6, `${after - before} bytes for senders who are gone`);
});
