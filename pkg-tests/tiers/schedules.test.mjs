// What a schedule once broke: each is told in the order in which it happens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter, MemoryStore, storeFrom, TieredStore } from "tidegate";

/** A shared store in this process; `wait` says how long it takes to answer. */
function shared(wait = () => {}) {
  const texts = new Map();
  const slow = async (answer) => {
    await wait();
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
    const store = new TieredStore({ l2: shared(() => pause(2)), mode });
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
  const l2 = shared(() => pause(10));
  const store = new TieredStore({ l2, mode: "lease" });
  const limit = { algorithm: "fixed-window", limit: 8_000, window: "1h" };
  const limiter = new Limiter({ limit, store, timeout: "5s" });
  await limiter.consume("key");
  const second = limiter.consume("key");
  await store.close();
  await second;
  assert.equal((await new Limiter({ limit, store: l2 }).peek("key")).remaining, 7_998);
});

for (const closing of ["store", "limiter"]) {
  test(`lease: what comes after another answer goes back too when the ${closing} closes`, async () => {
    let waits = [];
    const l2 = shared(() => pause(waits.shift() ?? 0));
    const store = new TieredStore({ l2, mode: "lease" });
    const limit = { algorithm: "fixed-window", limit: 8_000, window: "1h" };
    const limiter = new Limiter({ limit, store, timeout: "5s" });
    await limiter.consume("key");
    waits = [200, 20];
    const withShare = limiter.consume("key");
    const without = limiter.consume("key");
    await { store, limiter }[closing].close();
    await Promise.all([withShare, without]);
    assert.equal((await new Limiter({ limit, store: l2 }).peek("key")).remaining, 7_997);
  });
}

test("a Limiter that is closed twice has given back what it held both times", async () => {
  const l2 = shared(() => pause(5));
  const store = new TieredStore({ l2, mode: "lease" });
  const limit = { algorithm: "fixed-window", limit: 8_000, window: "1h" };
  const limiter = new Limiter({ limit, store, timeout: "5s" });
  for (let call = 0; call < 3; call += 1) await limiter.consume("key");
  limiter.close();
  await limiter.close();
  assert.equal((await new Limiter({ limit, store: l2 }).peek("key")).remaining, 7_997);
});

/** So many keys with a unit each that the shared store does not know of, and how many it is asked at once. */
async function untold(keys) {
  const asked = { now: 0, most: 0, hangs: false };
  const l2 = shared(async () => {
    asked.now += 1;
    asked.most = Math.max(asked.most, asked.now);
    await (asked.hangs ? new Promise(() => {}) : pause(1));
    asked.now -= 1;
  });
  const store = new TieredStore({ l2, mode: "eager", syncEvery: "1h" });
  const limit = { algorithm: "fixed-window", limit: 80, window: "2h" };
  const limiter = new Limiter({ limit, store, timeout: 400 });
  for (let key = 0; key < keys; key += 100) {
    const those = Array.from({ length: 100 }, (_, at) => `${key + at}`);
    for (const _ of [1, 2]) await Promise.all(those.map((key) => limiter.consume(key)));
  }
  asked.most = 0;
  const direct = new Limiter({ limit, store: l2, timeout: "5s" });
  return { asked, store, used: async (key) => 80 - (await direct.peek(key)).remaining };
}

test("a close asks a store for no more at once than it can answer in time", async () => {
  const { asked, store, used } = await untold(800);
  await store.close();
  assert.ok(asked.most <= 256, `${asked.most} at once`);
  for (let key = 0; key < 800; key += 1) assert.equal(await used(`${key}`), 2);
});

test("a close gives a store up that takes nothing", async () => {
  const { asked, store } = await untold(800);
  asked.hangs = true;
  const start = performance.now();
  await store.close();
  const took = performance.now() - start;
  assert.ok(took < 2_000, `after ${took} ms`);
  assert.ok(asked.most <= 256, `${asked.most} at once`);
});

test("eager: what is admitted while the store closes is told after it", async () => {
  let wait = () => {};
  const l2 = shared(() => wait());
  const store = new TieredStore({ l2, mode: "eager", syncEvery: 200 });
  const limit = { algorithm: "fixed-window", limit: 80, window: "1h" };
  const limiter = new Limiter({ limit, store, timeout: "10s" });
  for (const key of ["before", "during"]) await limiter.consume(key);
  await limiter.consume("before");
  let closing;
  const answer = await new Promise((asked) => {
    wait = () => new Promise((answer) => asked(answer));
    closing = store.close();
  });
  wait = () => {};
  assert.equal((await limiter.consume("during")).local, true);
  answer();
  await closing;
  const direct = new Limiter({ limit, store: l2 });
  const end = performance.now() + 5_000;
  while ((await direct.peek("during")).remaining > 78 && performance.now() < end) await pause(20);
  assert.equal((await direct.peek("during")).remaining, 78);
});

for (const mode of ["deny-cache", "lease"]) {
  test(`${mode}: a repeated denial knows of what was admitted since`, async () => {
    const l2 = new MemoryStore({ now: () => 1e6 });
    const store = new TieredStore({ l2, mode });
    const limiter = new Limiter({ limit: { limit: 10, window: "10s" }, store });
    await limiter.consume("key", { cost: 8 });
    assert.equal((await limiter.consume("key", { cost: 5 })).retryAfterMs, 3_000);
    assert.equal((await limiter.consume("key", { cost: 2 })).allowed, true);
    const { retryAfterMs } = await limiter.consume("key", { cost: 5 });
    assert.equal(retryAfterMs, 5_000);
    await store.close();
  });
}

test("eager: a key that had no room and then has some is told of all its units", async () => {
  let waits = [];
  const l2 = shared(() => pause(waits.shift() ?? 0));
  const options = { mode: "eager", maxUnsynced: 10, syncEvery: "1h", maxKeys: 1 };
  const store = new TieredStore({ l2, ...options });
  const limit = { algorithm: "fixed-window", limit: 20, window: "1h" };
  const limiter = new Limiter({ limit, store, prefix: "mine", timeout: "5s" });
  const other = new Limiter({ limit, store, prefix: "other", timeout: "5s" });
  await new Limiter({ limit, store: l2, prefix: "mine" }).consume("key", { cost: 5 });
  await other.consume("key");
  let admitted = 5;
  const consume = async (cost) => {
    if ((await limiter.consume("key", { cost })).allowed) admitted += cost;
  };
  waits = [200];
  const withoutRow = consume(8);
  await other.close();
  await consume(1);
  await withoutRow;
  for (let call = 0; call < 20; call += 1) await consume(1);
  await store.close();
  assert.equal(admitted, 20);
});

test("no bound is claimed over a store that loses races", () => {
  const adapter = { get: () => null, compareAndSet: () => true, atomicity: "best-effort" };
  const store = new TieredStore({ l2: storeFrom(adapter) });
  assert.throws(() => store.overAdmissionBound({ limit: 5, window: "1s" }, 8), {
    code: "unsupported",
  });
});
