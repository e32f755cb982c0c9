import assert from "node:assert/strict";
import { test } from "node:test";
import { Limiter, leakyBucket, MemoryStore, storeFrom, TidegateError } from "tidegate";
import { frozenStore, frozenTable } from "./clock.mjs";

const perMinute = { limit: 5, window: "1m" };

/** Checks that the call fails with the code, and with a text that names what is wrong. */
function refused(call, code, ...names) {
  assert.throws(call, (error) => {
    assert.ok(error instanceof TidegateError, String(error));
    assert.equal(error.code, code, error.message);
    for (const name of names)
      assert.ok(error.message.includes(name), `${name} in: ${error.message}`);
    return true;
  });
}

test("options that make no sense name the option and the value", () => {
  const limiter = (options) => () => new Limiter(options);
  const limit = (change) => limiter({ limit: { ...perMinute, ...change } });
  refused(limit({ limit: 0 }), "bad_policy", "limit", "0");
  for (const value of [
    Number.NaN,
    -1,
    1.5,
    "5",
    2 ** 53,
    Number.POSITIVE_INFINITY,
    null,
    {},
    5n,
    Symbol("x"),
  ]) {
    refused(limit({ limit: value }), "bad_policy", "limit");
  }
  for (const value of [
    0,
    -1,
    1.5,
    Number.POSITIVE_INFINITY,
    Number.NaN,
    "10 parsecs",
    "",
    "0s",
    "366d",
    null,
    true,
  ]) {
    refused(limit({ window: value }), "bad_policy", "window");
  }
  refused(limit({ window: "10 parsecs" }), "bad_policy", '"10 parsecs"');
  refused(limit({ windowMS: 5 }), "bad_policy", "windowMS");
  refused(limit({ algorithm: "gcra" }), "bad_policy", "algorithm", '"gcra"');
  refused(limit({ burst: 0 }), "bad_policy", "burst", "0");
  refused(limit({ algorithm: "fixed-window", burst: 3 }), "bad_policy", "burst", "3");
  refused(limit({ algorithm: "sliding-window", strict: true }), "bad_policy", "strict");
  refused(limit({ strict: true, burst: 6 }), "bad_policy", "burst", "6");
  refused(limit({ name: "" }), "bad_policy", "name");
  refused(limit({ limit: 2 ** 40, window: "365d" }), "bad_policy", "limit");
  refused(limiter({ limit: [] }), "bad_policy", "limit", "there are 0");
  // The first of a refused list is not the first of the next.
  const wrong = { ...perMinute, name: "wrong", limit: -1 };
  refused(limiter({ limit: [perMinute, wrong] }), "bad_policy", "limit[1].limit", "-1");
  refused(limiter({ limit: [] }), "bad_policy", "limit", "there are 0");
  refused(limiter({ limit: [perMinute, perMinute] }), "bad_policy", "name", '"default", "default"');
  refused(limiter({ limit: Array(9).fill(perMinute) }), "bad_policy", "limit", "there are 9");
  refused(limiter({}), "bad_policy", "limit");
  refused(limiter(undefined), "bad_policy", "options");
  refused(
    limiter({ limit: perMinute, onStoreError: "maybe" }),
    "bad_policy",
    "onStoreError",
    '"maybe"',
  );
  refused(limiter({ limit: perMinute, timeout: 2 ** 31 }), "bad_policy", "timeout");
  refused(limiter({ limit: perMinute, dryRun: "yes" }), "bad_policy", "dryRun", '"yes"');
  refused(limiter({ limit: perMinute, prefix: "" }), "bad_policy", "prefix");
  refused(limiter({ limit: perMinute, store: {} }), "bad_policy", "store");
  refused(limiter({ limit: perMinute, stroe: 1 }), "bad_policy", "stroe");
  refused(() => new MemoryStore({ maxKeys: 0 }), "bad_policy", "maxKeys", "0");
  refused(() => new MemoryStore({ now: 5 }), "bad_policy", "now", "5");
  refused(() => new MemoryStore({ onFull: "evict" }), "bad_policy", "onFull", '"evict"');
  refused(() => storeFrom({ get() {} }), "bad_policy", "compareAndSet");
  refused(() => storeFrom(null), "bad_policy", "adapter", "null");
});

test("numbers at the edge of what is exact are accepted", () => {
  for (const limit of [
    { limit: 10_000_000, window: "30d" },
    { limit: 2 ** 51 - 1, window: 1 },
    { limit: Number.MAX_SAFE_INTEGER, window: "365d", algorithm: "fixed-window" },
    { limit: 1, window: "365d", strict: true },
  ]) {
    const decision = new Limiter({ limit }).consumeSync("key");
    assert.equal(decision.allowed, true);
    assert.equal(decision.remaining, limit.limit - 1);
  }
});

test("keys and costs that make no sense are refused and charge nothing", async () => {
  const limiter = new Limiter({ limit: perMinute });
  for (const key of ["", undefined, null, 5, {}, [], Symbol("x")]) {
    refused(() => limiter.consumeSync(key), "bad_argument", "key");
    await assert.rejects(limiter.consume(key), { code: "bad_argument" });
  }
  for (const cost of [Number.NaN, -1, 0, 1.5, "1", 2 ** 53, Number.POSITIVE_INFINITY, null, 1n]) {
    refused(() => limiter.consumeSync("key", { cost }), "bad_argument", "cost");
    await assert.rejects(limiter.consume("key", { cost }), { code: "bad_argument" });
    if (cost !== undefined)
      refused(() => limiter.handle("key").tryConsume(cost), "bad_argument", "cost");
  }
  for (const options of [3, "3", null, [], new Map()]) {
    refused(() => limiter.consumeSync("key", options), "bad_argument", "options");
  }
  refused(() => limiter.consumeSync("key", { costs: 2 }), "bad_argument", "costs");
  assert.equal((await limiter.peek("key")).remaining, 5);
});

test("odd keys are ordinary and distinct", async () => {
  const long = "k".repeat(10_000);
  const keys = [
    "__proto__",
    "constructor",
    "\ud800",
    "\ud801",
    "\ufffd",
    "\0",
    "\n",
    "{a}",
    "a",
    "*",
    "?",
    "[",
    "%41",
    "A",
    " ",
    "é",
    "e\u0301",
    "😀",
    long,
    `${long}k`,
    "k".repeat(201),
    "b:c",
    ":b:c",
  ];
  const { adapter, rows } = frozenTable();
  for (const store of [new MemoryStore(), storeFrom(adapter)]) {
    const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, store });
    for (const key of keys)
      assert.equal((await limiter.consume(key)).allowed, true, JSON.stringify(key));
    for (const key of keys)
      assert.equal((await limiter.consume(key)).allowed, false, JSON.stringify(key));
  }
  assert.ok([...rows.keys()].every((key) => /^[ -~]{1,420}$/.test(key)));
});

test("a prefix and a key never meet another prefix and key", async () => {
  const { adapter } = frozenTable();
  for (const store of [
    new MemoryStore(),
    storeFrom(adapter),
    storeFrom(adapter, { prefix: "a" }),
  ]) {
    const consume = (prefix, key) =>
      new Limiter({ limit: { limit: 1, window: "1h" }, store, prefix }).consume(key);
    for (const [prefix, key] of [
      ["a:b", "c"],
      ["a", "b:c"],
      ["a:b:c", "d"],
      ["a/b", "c"],
      ["a%3Ab", "c"],
      ["\ud800", "c"],
    ]) {
      assert.equal((await consume(prefix, key)).allowed, true, `${prefix} ${key}`);
    }
  }
});

for (const limit of [
  { limit: 7, window: "1m" },
  { limit: 7, window: 1000, burst: 3 },
  { limit: 10, window: 1000, strict: true },
  { limit: 1, window: "1m" },
  { limit: 7, window: 1000, algorithm: "fixed-window" },
  { limit: 7, window: 1000, algorithm: "sliding-window" },
]) {
  test(`remaining is honest and the wait exact: ${JSON.stringify(limit)}`, () => {
    const { clock, store } = frozenStore();
    const limiter = new Limiter({ limit, store });
    let seed = 1;
    const random = (most) => {
      seed = Math.imul(seed, 1_664_525) + 1_013_904_223;
      return (seed >>> 8) % most;
    };
    for (let round = 0; round < 200; round += 1) {
      clock.ms += random(400);
      const cost = 1 + random(3);
      const decision = limiter.consumeSync("key", { cost });
      if (decision.allowed || decision.reason === "never") continue;
      clock.ms += decision.retryAfterMs - 1;
      assert.equal(limiter.consumeSync("key", { cost }).allowed, false, "a millisecond early");
      clock.ms += 1;
      const admitted = limiter.consumeSync("key", { cost });
      assert.equal(admitted.allowed, true, "at the time told");
      for (let left = admitted.remaining; left > 0; left -= 1) {
        assert.equal(limiter.consumeSync("key").allowed, true);
      }
      assert.equal(limiter.consumeSync("key").allowed, false);
    }
  });
}

test("several limits are one step: all are charged or none is", async () => {
  const { store } = frozenStore();
  const limiter = new Limiter({
    limit: [
      { name: "wide", limit: 100, window: "1m" },
      { name: "narrow", limit: 2, window: "1h" },
    ],
    store,
  });
  limiter.consumeSync("key", { cost: 2 });
  for (let call = 0; call < 50; call += 1) {
    const denied = limiter.consumeSync("key");
    assert.equal(denied.allowed, false);
    assert.equal(denied.limitName, "narrow");
    assert.equal(denied.limit, 2);
  }
  const wide = new Limiter({ limit: { name: "wide", limit: 100, window: "1m" }, store });
  assert.equal((await wide.peek("key")).remaining, 98);
});

test("never wins over blocked, and blocked over limited", async () => {
  const { clock, store } = frozenStore();
  const limiter = new Limiter({ limit: perMinute, store });
  await limiter.block("key", "2m");
  const blocked = limiter.consumeSync("key");
  assert.deepEqual(
    [blocked.reason, blocked.remaining, blocked.retryAfterMs, blocked.resetAfterMs],
    ["blocked", 0, 120_000, 120_000],
  );
  assert.equal(limiter.consumeSync("key", { cost: 6 }).reason, "never");
  assert.equal(limiter.handle("key").tryConsume(), false);
  clock.ms += 119_999;
  assert.equal(limiter.consumeSync("key").reason, "blocked");
  clock.ms += 1;
  assert.equal(limiter.consumeSync("key").remaining, 4, "denied calls charged nothing");
  await limiter.block("key", "2m");
  await limiter.unblock("key");
  assert.equal(limiter.consumeSync("key").remaining, 3);
});

test("refund never goes above a full budget and never creates state", async () => {
  const { store } = frozenStore();
  const limiter = new Limiter({ limit: perMinute, store });
  await limiter.refund("unseen", 100);
  assert.equal(store.size, 0);
  limiter.consumeSync("key", { cost: 3 });
  await limiter.refund("key", { cost: 1 });
  assert.equal((await limiter.peek("key")).remaining, 3);
  await limiter.refund("key", 100);
  assert.equal((await limiter.peek("key")).remaining, 5);
  assert.equal(store.size, 0, "a whole key is no key");
  await assert.rejects(limiter.refund("key", -1), { code: "bad_argument" });
});

test("reset forgets this key and only this key", async () => {
  const { store } = frozenStore();
  const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, store });
  for (const key of ["user1", "user10", "user1:x"]) limiter.consumeSync(key);
  await limiter.block("user1", "1h");
  const handle = limiter.handle("user1");
  await limiter.reset("user1");
  assert.equal(handle.tryConsume(), true);
  assert.equal(limiter.consumeSync("user10").allowed, false);
  assert.equal(limiter.consumeSync("user1:x").allowed, false);
});

test("peek changes and stores nothing", async () => {
  const { store } = frozenStore();
  const limiter = new Limiter({ limit: perMinute, store });
  const peeked = await limiter.peek("key", { cost: 5 });
  assert.deepEqual([peeked.allowed, peeked.remaining, peeked.resetAfterMs], [true, 5, 0]);
  assert.equal(store.size, 0);
  assert.equal((await limiter.peek("key", { cost: 6 })).reason, "never");
});

test("dryRun lets through and tells the denial", () => {
  const limiter = new Limiter({ limit: { limit: 1, window: "1h" }, dryRun: true });
  assert.equal(limiter.consumeSync("key").dryRun, false);
  const denied = limiter.consumeSync("key");
  assert.deepEqual(
    [denied.allowed, denied.dryRun, denied.reason, denied.remaining],
    [true, true, "limited", 0],
  );
  assert.equal(limiter.handle("key").tryConsume(), true);
});

test("a policy that changes keeps what was used", async () => {
  const { store } = frozenStore();
  const limiter = (limit) => new Limiter({ limit, store });
  limiter({ limit: 10, window: "1h" }).consumeSync("key", { cost: 6 });
  assert.equal((await limiter({ limit: 20, window: "1h" }).peek("key")).remaining, 14);
  assert.equal((await limiter({ limit: 4, window: "1h" }).peek("key")).remaining, 0);
  const fixed = limiter({ limit: 10, window: "1h", algorithm: "fixed-window" });
  assert.equal(fixed.consumeSync("key").remaining, 3);
  const sliding = limiter({ limit: 10, window: "1h", algorithm: "sliding-window" });
  assert.equal((await sliding.peek("key")).remaining, 3);
});

test("the leaky bucket in its own words is exact or refused", () => {
  assert.deepEqual(leakyBucket(20, 2.5), { limit: 1, window: 400, burst: 20 });
  assert.deepEqual(leakyBucket(5, 0.1, "slow"), {
    name: "slow",
    limit: 1,
    window: 10_000,
    burst: 5,
  });
  assert.deepEqual(leakyBucket(3, 7), { limit: 7, window: 1000, burst: 3 });
  for (const leak of [1 / 3, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1", 1e-9]) {
    refused(() => leakyBucket(5, leak), "bad_policy", "leakPerSecond");
  }
  for (const capacity of [0, "5", undefined]) {
    refused(() => leakyBucket(capacity, 1), "bad_policy", "capacity", String(capacity));
  }
});

test("handles and consumeSync need a synchronous store", () => {
  const { adapter } = frozenTable();
  const limiter = new Limiter({ limit: perMinute, store: storeFrom(adapter) });
  refused(() => limiter.consumeSync("key"), "sync_unavailable");
  refused(() => limiter.handle("key"), "sync_unavailable");
});

test("a closed limiter says so, and closing is idempotent", async () => {
  const limiter = new Limiter({ limit: perMinute });
  const handle = limiter.handle("key");
  await limiter.close();
  await limiter.close();
  refused(() => limiter.consumeSync("key"), "closed");
  refused(() => handle.tryConsume(), "closed");
  await assert.rejects(limiter.consume("key"), { code: "closed" });
});

test("what is under way when the limiter closes is still decided locally", async () => {
  let fail;
  const get = () =>
    new Promise((_, reject) => {
      fail = reject;
    });
  const store = storeFrom({ get, compareAndSet: () => true });
  const limiter = new Limiter({ limit: perMinute, store, onStoreError: "local" });
  const decisions = [];
  for (const closes of [false, true]) {
    const decision = limiter.consume("key");
    await new Promise((resolve) => setTimeout(resolve));
    if (closes) await limiter.close();
    fail(new Error("down"));
    decisions.push(await decision);
  }
  const told = decisions.map(({ allowed, local, limit }) => [allowed, local, limit]);
  assert.deepEqual(told, Array(2).fill([true, true, perMinute.limit]));
});

test("a thousand Limiters that come and go leave no memory behind", async () => {
  const come = async () => {
    const limiter = new Limiter({ limit: perMinute });
    const handle = limiter.handle("key");
    handle.tryConsume();
    await limiter.close();
    refused(() => handle.tryConsume(), "closed");
  };
  for (let n = 0; n < 20; n += 1) await come();
  const before = process.memoryUsage().arrayBuffers + process.memoryUsage().rss;
  for (let n = 0; n < 1_000; n += 1) await come();
  const grown = process.memoryUsage().arrayBuffers + process.memoryUsage().rss - before;
  assert.ok(grown < 100e6, `${grown} bytes more`);
});

test("a clock that answers nonsense is a store error, not a decision", () => {
  let now = 1_000;
  const limiter = new Limiter({ limit: perMinute, store: new MemoryStore({ now: () => now }) });
  limiter.consumeSync("key");
  for (now of [Number.NaN, -1, undefined, "5", Number.POSITIVE_INFINITY]) {
    refused(() => limiter.consumeSync("key"), "store", "now()");
  }
  const failing = () => {
    throw new RangeError("no clock");
  };
  const without = new Limiter({ limit: perMinute, store: new MemoryStore({ now: failing }) });
  refused(() => without.consumeSync("key"), "store", "now()", "no clock");
});

test("a full memory store denies new keys until one is whole, and never forgets a limited one", async () => {
  const { clock, store } = frozenStore({ maxKeys: 3 });
  const limiter = new Limiter({
    limit: { limit: 1, window: "1m", algorithm: "fixed-window" },
    store,
  });
  for (const key of ["a", "b", "c"]) {
    limiter.consumeSync(key);
    clock.ms += 1000;
  }
  const full = limiter.consumeSync("d");
  assert.deepEqual(
    [full.allowed, full.reason, full.remaining, full.retryAfterMs],
    [false, "limited", 0, 57_000],
  );
  assert.equal(store.size, 3);
  assert.equal(limiter.consumeSync("a").allowed, false, "still remembered");
  clock.ms += 56_999;
  assert.equal(limiter.consumeSync("d").allowed, false);
  clock.ms += 1;
  assert.equal(limiter.consumeSync("d").allowed, true);
  assert.equal(limiter.consumeSync("b").allowed, false);
  assert.equal(store.size, 3);
});

test("a full memory store can share one budget among new keys", () => {
  const { store } = frozenStore({ maxKeys: 1, onFull: "share" });
  const limiter = new Limiter({ limit: { limit: 2, window: "1m" }, store });
  limiter.consumeSync("a");
  const admitted = ["b", "c", "d"].map((key) => limiter.consumeSync(key).allowed);
  assert.deepEqual(admitted, [true, true, false]);
  assert.equal(limiter.consumeSync("a").allowed, true, "known keys keep their own");
});

test("a million keys come and go in a bounded store", () => {
  const { clock, store } = frozenStore({ maxKeys: 10_000 });
  const limiter = new Limiter({ limit: { limit: 1, window: 100 }, store });
  let admitted = 0;
  for (let n = 0; n < 300_000; n += 1) {
    if (n % 50 === 0) clock.ms += 1;
    if (limiter.consumeSync(`key:${n}`).allowed) admitted += 1;
  }
  assert.equal(admitted, 300_000);
  assert.ok(store.size <= 10_000);
});

test("handles stay right after expiry, eviction and reset", async () => {
  const { clock, store } = frozenStore({ maxKeys: 2 });
  const limiter = new Limiter({ limit: { limit: 1, window: "1m" }, store });
  const handle = limiter.handle("a");
  assert.deepEqual([handle.tryConsume(), handle.tryConsume()], [true, false]);
  clock.ms += 60_000;
  for (const key of ["b", "c"])
    assert.equal(limiter.consumeSync(key).allowed, true, "evicts the whole key");
  assert.equal(handle.tryConsume(), false, "full: its slot is another's now");
  clock.ms += 60_000;
  assert.equal(handle.tryConsume(), true);
  assert.equal(limiter.consumeSync("a").allowed, false, "the same budget by its key");
  await limiter.reset("a");
  assert.equal(handle.tryConsume(), true);
});
