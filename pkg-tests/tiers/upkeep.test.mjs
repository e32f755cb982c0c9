// What goes on beside the calls: closing, changes of a key, and what nobody waits for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Limiter, MemoryStore, storeFrom, TieredStore } from "tidegate";
import { sharedMap } from "./shared.mjs";

const HOUR_MS = 3_600_000;
const fixed = (limit, name) => ({ algorithm: "fixed-window", limit, window: "1h", name });

/** Bytes in use once what is not needed is gone. */
async function bytesInUse() {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (let round = 0; round < 3; round += 1) {
    // Calls that were under way may be held until their deadline.
    await pause(200);
    collect();
  }
  const { heapUsed, arrayBuffers, external } = process.memoryUsage();
  return heapUsed + arrayBuffers + external;
}

for (const [mode, count] of [
  ["deny-cache", 4_000],
  ["lease", 10_000],
  ["eager", 4_000],
]) {
  test(`${mode}: of ${count} Limiters that are closed nothing is left`, async () => {
    const store = new TieredStore({ l2: new MemoryStore(), mode, syncEvery: "1h" });
    const openAndClose = async (many) => {
      for (let number = 0; number < many; number += 1) {
        const limiter = new Limiter({ limit: fixed(1_000_000), store });
        for (let call = 0; call < 3; call += 1) await limiter.consume("key");
        await limiter.close();
      }
    };
    await openAndClose(count / 2);
    const before = await bytesInUse();
    await openAndClose(count / 2);
    const grown = (await bytesInUse()) - before;
    assert.ok(grown < 1_000_000, `${grown} bytes more`);
    const another = new Limiter({ limit: fixed(1_000_000), store });
    assert.equal((await another.consume("another")).remaining, 999_999);
    await store.close();
  });
}

test("a reset of one Limiter leaves the others' shares and blocks nobody's budget", async () => {
  const l2 = new MemoryStore();
  const store = new TieredStore({ l2, mode: "lease" });
  const [one, other] = ["one", "other"].map(
    (name) => new Limiter({ limit: fixed(800, name), store }),
  );
  await one.consume("key");
  let admitted = 0;
  for (let local = false; !local; admitted += 1) ({ local } = await other.consume("key"));
  await one.reset("key");
  assert.equal((await other.consume("key")).local, true, "its share is its own");
  admitted += 1;
  await other.block("key", "1h");
  assert.equal((await other.consume("key")).reason, "blocked");
  await other.unblock("key");
  await store.close();
  const direct = new Limiter({ limit: fixed(800, "other"), store: l2 });
  assert.equal((await direct.peek("key")).remaining, 800 - admitted, "and goes back");
});

test("lease: a block by another node is seen after a second, however long a share lay idle", async () => {
  const l2 = new MemoryStore();
  const store = new TieredStore({ l2, mode: "lease" });
  const limit = { limit: 8_000, window: "1h" };
  const [here, elsewhere] = [store, l2].map((store) => new Limiter({ limit, store }));
  for (let local = false; !local; ) ({ local } = await here.consume("key"));
  await elsewhere.block("key", "1h");
  await pause(1_010);
  assert.equal(
    (await here.consume("key", { cost: 9_000 })).reason,
    "never",
    "which tells of no block",
  );
  assert.equal((await here.consume("key")).reason, "blocked");
  await elsewhere.unblock("key");
  await store.close();
});

test("eager: a state that another caller's clock is ahead with is not moved", async () => {
  const { store: l2 } = sharedMap();
  const store = new TieredStore({ l2, mode: "eager", syncEvery: "1h" });
  const [here, elsewhere] = [store, l2].map((store) => new Limiter({ limit: fixed(100), store }));
  const { now } = Date;
  Date.now = () => now() + 3 * HOUR_MS;
  await elsewhere.consume("key", { cost: 50 }).finally(() => {
    Date.now = now;
  });
  const asked = await here.consume("key");
  const known = await here.consume("key");
  assert.deepEqual([asked.local, known.local], [false, true]);
  assert.ok(asked.resetAfterMs > 3 * HOUR_MS);
  assert.ok(known.resetAfterMs > 3 * HOUR_MS, `${known.resetAfterMs} ms`);
  await store.close();
});

test("a change whose caller has given it up is not made", async () => {
  const texts = new Map();
  const slowly = (answer) => pause(25).then(answer);
  const l2 = storeFrom({
    get: (key) => slowly(() => texts.get(key) ?? null),
    compareAndSet: (key, _, next) => slowly(() => texts.set(key, next) !== undefined),
    now: () => Date.now(),
  });
  const store = new TieredStore({ l2, mode: "eager", syncEvery: 1 });
  const limiter = new Limiter({ limit: fixed(100), store, timeout: 80 });
  await limiter.consume("key");
  await limiter.consume("key");
  await pause(10);
  // While that is being told, more is admitted, which has to be told next; then there is no time left.
  for (let call = 0; call < 4; call += 1) await limiter.consume("key");
  await assert.rejects(limiter.reset("key"), { code: "timeout" });
  await pause(150);
  const direct = new Limiter({ limit: fixed(100), store: l2 });
  assert.equal((await direct.peek("key")).remaining, 94);
  await store.close();
});

/** How many timers are set meanwhile. */
async function timersDuring(body) {
  const { setTimeout } = globalThis;
  let timers = 0;
  globalThis.setTimeout = (...args) => {
    timers += 1;
    return setTimeout(...args);
  };
  await body();
  globalThis.setTimeout = setTimeout;
  return timers;
}

for (const [state, keys] of [
  ["down", 3_000],
  ["hung", 300],
]) {
  test(`what cannot be told while l2 is ${state} is left alone`, async () => {
    const { store: l2, line } = sharedMap();
    const store = new TieredStore({ l2, mode: "eager", syncEvery: 1 });
    const limiter = new Limiter({ limit: fixed(100), store, timeout: "1s" });
    const all = Array.from({ length: keys }, (_, number) => `key ${number}`);
    await Promise.all(all.map((key) => limiter.consume(key)));
    line.state = state;
    const admitted = await Promise.all(all.map((key) => limiter.consume(key)));
    assert.ok(admitted.every(({ local }) => local));
    await pause(50);
    const timers = await timersDuring(() => pause(500));
    assert.ok(timers < 50, `${timers} timers in half a second`);
    line.state = "up";
    await store.close();
    const direct = new Limiter({ limit: fixed(100), store: l2 });
    assert.equal((await direct.peek(all[0])).remaining, 98);
  });
}
