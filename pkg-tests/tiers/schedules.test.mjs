// What a schedule once broke: each is told in the order in which it happens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter, MemoryStore, storeFrom, TieredStore } from "tidegate";

/** A shared store in this process whose clock is the test's, and whose answers take a while. */
function shared(delayMs = 0) {
  const texts = new Map();
  const slow = async (answer) => {
    if (delayMs > 0) await pause(delayMs);
    return answer();
  };
  return storeFrom({
    get: (key) => slow(() => texts.get(key) ?? null),
    compareAndSet: (key, expected, next) =>
      slow(() => {
        if ((texts.get(key) ?? null) !== expected) return false;
        texts.set(key, next);
        return true;
      }),
    now: () => Date.now(),
  });
}

test("eager: a window that has not begun is begun by the shared store", async () => {
  const l2 = new MemoryStore();
  const store = new TieredStore({ l2, mode: "eager", maxUnsynced: 5, syncEvery: "1h" });
  const limit = { algorithm: "fixed-window", limit: 5, window: "1h" };
  const limiter = new Limiter({ limit, store });
  await limiter.consume("key", { cost: 5 });
  await limiter.refund("key", 5);
  assert.equal((await limiter.peek("key")).remaining, 5);
  assert.equal((await limiter.consume("key")).local, false);
  assert.equal((await limiter.consume("key")).local, true);
  await store.close();
});

for (const mode of ["lease", "eager"]) {
  test(`${mode}: a key under load can be blocked`, async () => {
    const store = new TieredStore({ l2: shared(2), mode });
    const limit = { limit: 1_000_000, window: "1h" };
    const limiter = new Limiter({ limit, store, timeout: "5s" });
    let isOver = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        await limiter.consume("key");
        await pause(0);
      }
    });
    await pause(50);
    await limiter.block("key", "1h");
    assert.equal((await limiter.consume("key")).reason, "blocked");
    isOver = true;
    await Promise.all(load);
    await store.close();
  });
}

test("lease: one large cost does not end it", async () => {
  const store = new TieredStore({ l2: new MemoryStore(), mode: "lease", leaseUnits: 20 });
  const limiter = new Limiter({ limit: { limit: 8_000, window: "1h" }, store });
  const local = async (calls) => {
    let count = 0;
    for (let call = 0; call < calls; call += 1) {
      if ((await limiter.consume("key")).local) count += 1;
    }
    return count;
  };
  assert.ok((await local(300)) > 250);
  for (let call = 0; call < 4; call += 1) await limiter.consume("key", { cost: 500 });
  await local(40);
  assert.ok((await local(300)) > 250);
  await store.close();
});

test("lease: a share that is still on its way when the store closes goes back", async () => {
  const l2 = shared(10);
  const store = new TieredStore({ l2, mode: "lease" });
  const limit = { algorithm: "fixed-window", limit: 8_000, window: "1h" };
  const limiter = new Limiter({ limit, store, timeout: "5s" });
  await limiter.consume("key");
  const second = limiter.consume("key");
  await store.close();
  await second;
  assert.equal((await new Limiter({ limit, store: l2 }).peek("key")).remaining, 7_998);
});

test("no bound is claimed over a store that loses races", () => {
  const adapter = { get: () => null, compareAndSet: () => true, atomicity: "best-effort" };
  const store = new TieredStore({ l2: storeFrom(adapter) });
  assert.throws(() => store.overAdmissionBound({ limit: 5, window: "1s" }, 8), {
    code: "unsupported",
  });
});
