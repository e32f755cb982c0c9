// A host's Arkos store behind our own classes: what it can do is exact, and what it cannot is refused.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import {
  BurstDetector,
  Deduplicator,
  Limiter,
  MemoryStore,
  storeFrom,
  toArkosStore,
} from "tidegate";
import { MemoryGatewayStore } from "tidegate/arkos";
import { MapStore } from "./map-store.mjs";

const START = 1_790_000_000_000;
const perMinute = { algorithm: "fixed-window", limit: 3, window: "1m" };

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["Date"], now: START });
});

const later = (ms) => mock.timers.setTime(Date.now() + ms);

/** A limiter over a store whose increment answers that. */
function answering(answer, options = {}) {
  const arkos = new MapStore();
  arkos.increment = typeof answer === "function" ? answer : async () => answer;
  return new Limiter({ limit: perMinute, store: storeFrom(arkos), ...options });
}

test("says what it is", async () => {
  const store = storeFrom(new MapStore());
  assert.deepEqual(store.capabilities, {
    atomicity: "exact",
    clock: "store",
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1_000,
  });
  await store.close();
});

for (const [name, make] of [
  ["a Map", () => new MapStore()],
  ["our own", () => new MemoryGatewayStore({ now: () => Date.now() })],
  ["a MemoryStore's", () => toArkosStore(new MemoryStore({ now: () => Date.now() }))],
]) {
  test(`${name}: drives a fixed window`, async () => {
    const limiter = new Limiter({ limit: { ...perMinute, name: "m" }, store: storeFrom(make()) });
    const fixed = { limit: 3, limitName: "m", local: false, dryRun: false };
    for (const remaining of [2, 1, 0]) {
      assert.deepEqual(await limiter.consume("k"), {
        ...fixed,
        allowed: true,
        reason: "ok",
        remaining,
        retryAfterMs: 0,
        resetAfterMs: 60_000,
      });
    }
    later(20_000);
    assert.deepEqual(await limiter.consume("k"), {
      ...fixed,
      allowed: false,
      reason: "limited",
      remaining: 0,
      retryAfterMs: 40_000,
      resetAfterMs: 40_000,
    });
    assert.equal((await limiter.consume("other")).allowed, true);
    later(39_999);
    assert.equal((await limiter.consume("k")).retryAfterMs, 1);
    later(1);
    assert.equal((await limiter.consume("k")).remaining, 2);
    await limiter.close();
  });

  test(`${name}: admits no more than the limit of those who come at once`, async () => {
    const limiter = new Limiter({ limit: perMinute, store: storeFrom(make()) });
    const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.consume("k")));
    assert.equal(decisions.filter(({ allowed }) => allowed).length, 3);
  });

  test(`${name}: tells a first from those after it`, async () => {
    const ids = new Deduplicator({ ttl: "90s", store: storeFrom(make()) });
    assert.equal(await ids.has("id"), false);
    const asked = await Promise.all(Array.from({ length: 50 }, () => ids.first("id")));
    assert.equal(asked.filter((first) => first).length, 1);
    assert.equal(await ids.has("id"), true);
    later(90_000);
    assert.equal(await ids.has("id"), false);
    assert.equal(await ids.first("id"), true);
  });
}

test("windows go over in milliseconds, times to live in whole seconds", async () => {
  const arkos = new MapStore();
  const store = storeFrom(arkos, { prefix: "app" });
  await new Limiter({ limit: { ...perMinute, window: 1_500 }, store }).consume("user:1");
  await new Deduplicator({ ttl: 1_500, store }).first("id-1");
  await new Deduplicator({ ttl: "30d", store, prefix: "p" }).first("id-1");
  assert.deepEqual(arkos.calls, [
    ["increment", "app/tg:l:user:1", 1_500],
    ["setIfNotExists", "app/tg:m:id-1", 2],
    ["setIfNotExists", "app/p:m:id-1", 30 * 86_400],
  ]);
});

test("ids that are not plain are hashed, and stay different", async () => {
  const arkos = new MapStore();
  const ids = new Deduplicator({ ttl: "1m", store: storeFrom(arkos) });
  const plain = ["a", "A_b-9", "x".repeat(128)];
  const others = [
    "a:b",
    "*",
    "a b",
    "é",
    "\ud800",
    "\ud801",
    "x".repeat(129),
    "y".repeat(10_000),
    "#a",
    "\0",
  ];
  for (const id of [...plain, ...others]) assert.equal(await ids.first(id), true, id.slice(0, 10));
  const keys = arkos.calls.map(([, key]) => key);
  for (const [at, id] of plain.entries()) assert.equal(keys[at], `tg:m:${id}`);
  for (const key of keys.slice(plain.length)) assert.match(key, /^tg:m:#[A-Za-z0-9_-]{20,64}$/);
  assert.equal(new Set(keys).size, keys.length);
  for (const id of others) assert.equal(await ids.first(id), false, id.slice(0, 10));
});

test("what the five methods cannot do is refused by the constructor", () => {
  const store = storeFrom(new MapStore());
  const refused = (make) => assert.throws(make, { code: "unsupported" });
  refused(() => new Limiter({ limit: { limit: 3, window: "1m" }, store }));
  for (const algorithm of ["leaky-bucket", "token-bucket", "sliding-window"]) {
    refused(() => new Limiter({ limit: { ...perMinute, algorithm }, store }));
  }
  refused(() => new Limiter({ limit: [perMinute, { ...perMinute, name: "b" }], store }));
  refused(() => new BurstDetector({ threshold: 3, window: "1m", store }));
});

test("what the five methods cannot do is refused by the call, and never asked of the store", async () => {
  const arkos = new MapStore();
  const store = storeFrom(arkos);
  const limiter = new Limiter({ limit: perMinute, store, onStoreError: "allow" });
  const ids = new Deduplicator({ ttl: "1m", store, onStoreError: "allow" });
  const calls = [
    () => limiter.consume("k", { cost: 2 }),
    () => limiter.peek("k"),
    () => limiter.refund("k"),
    () => limiter.block("k", "1m"),
    () => limiter.unblock("k"),
    () => limiter.reset("k"),
    () => ids.claim("id"),
    () => ids.run("id", () => 1),
    () => ids.forget("id"),
  ];
  for (const call of calls) await assert.rejects(call, { code: "unsupported" }, String(call));
  assert.throws(() => limiter.consumeSync("k"), { code: "sync_unavailable" });
  assert.throws(() => limiter.handle("k"), { code: "sync_unavailable" });
  assert.deepEqual(arkos.calls, []);
});

test("an answer that makes no sense is an error, never a budget", async () => {
  const resetAt = START + 60_000;
  const nonsense = [
    undefined,
    null,
    7,
    "1",
    {},
    { count: "1", resetAt },
    { count: Number.NaN, resetAt },
    { count: 0, resetAt },
    { count: -1, resetAt },
    { count: 1.5, resetAt },
    { count: 1 },
    { count: 1, resetAt: Number.NaN },
    { count: 1, resetAt: Number.POSITIVE_INFINITY },
    { count: 1, resetAt: new Date(resetAt) },
    { count: 1, resetAt: START - 1 },
  ];
  for (const answer of nonsense) {
    await assert.rejects(answering(answer).consume("k"), { code: "store" }, JSON.stringify(answer));
  }
  const arkos = Object.assign(new MapStore(), {
    has: async () => 1,
    setIfNotExists: async () => "OK",
  });
  const ids = new Deduplicator({ ttl: "1m", store: storeFrom(arkos) });
  await assert.rejects(ids.first("id"), { code: "store" });
  await assert.rejects(ids.has("id"), { code: "store" });
});

test("an answer that comes after its window is over is an answer all the same", async () => {
  const slow = async () => {
    later(70_000);
    return { count: 4, resetAt: START + 60_000 };
  };
  const { allowed, retryAfterMs } = await answering(slow).consume("k");
  assert.equal(allowed, false);
  assert.equal(retryAfterMs, 1);
});

test("a store that fails, or does not answer, is what onStoreError says", async () => {
  const cause = new Error("no connection");
  const failures = [
    () => Promise.reject(cause),
    () => {
      throw cause;
    },
  ];
  for (const failing of failures) {
    await assert.rejects(answering(failing).consume("k"), { code: "store", cause });
    const open = await answering(failing, { onStoreError: "allow" }).consume("k");
    assert.deepEqual([open.allowed, open.reason, open.limit], [true, "store-error", 3]);
    const local = answering(failing, { onStoreError: "local" });
    assert.deepEqual(
      await Promise.all(Array.from({ length: 4 }, async () => (await local.consume("k")).allowed)),
      [true, true, true, false],
    );
  }
  const hung = answering(() => new Promise(() => {}), { timeout: 20, onStoreError: "deny" });
  const { allowed, reason } = await hung.consume("k");
  assert.deepEqual([allowed, reason], [false, "timeout"]);
});

test("a shape that is neither is told what is missing", () => {
  const missing = (adapter, ...names) => {
    assert.throws(
      () => storeFrom(adapter),
      (error) => error.code === "bad_policy" && names.every((name) => error.message.includes(name)),
    );
  };
  missing({ increment() {} }, "clear");
  missing({ increment() {}, clear() {}, has() {}, set() {} }, "setIfNotExists");
  missing(Object.assign(new MapStore(), { has: 5 }), "has", "5");
  missing({}, "get");
  missing(null, "null");
  assert.throws(() => storeFrom(new MapStore(), { prefix: "" }), { code: "bad_policy" });
  assert.throws(() => storeFrom(new MapStore(), { ttl: 1 }), { code: "bad_policy" });
});
