// What a TieredStore accepts, and what it promises of itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Deduplicator, Limiter, MemoryStore, storeFrom, TieredStore } from "tidegate";
import { MemoryGatewayStore } from "tidegate/arkos";
import { sharedMap } from "./shared.mjs";

const MODES = ["deny-cache", "lease", "eager"];
const limit = { limit: 10, window: "1h" };
const fixed = { ...limit, algorithm: "fixed-window" };
const l2 = new MemoryStore();

test("each option is checked, and the error names it and its value", () => {
  for (const [options, ...words] of [
    [undefined, "options", "undefined"],
    [{}, '"l2"', "undefined"],
    [{ l2: new Map() }, '"l2"', "an object"],
    [{ l2, mode: "lazy" }, '"mode"', '"lazy"'],
    [{ l2, maxUnsynced: 0 }, "maxUnsynced", "0"],
    [{ l2, maxUnsynced: 1.5 }, "maxUnsynced", "1.5"],
    [{ l2, syncEvery: "soon" }, "syncEvery", '"soon"'],
    [{ l2, syncEvery: 0 }, "syncEvery", "0"],
    [{ l2, syncEvery: "30d" }, "syncEvery", '"30d"'],
    [{ l2, leaseUnits: -3 }, "leaseUnits", "-3"],
    [{ l2, maxKeys: "many" }, "maxKeys", '"many"'],
    [{ l2, maxKeys: 2 ** 32 }, "maxKeys", "4294967296"],
    [{ l2, ttl: 1 }, '"ttl"'],
  ]) {
    assert.throws(
      () => new TieredStore(options),
      (error) => error.code === "bad_policy" && words.every((word) => error.message.includes(word)),
      words.join(" "),
    );
  }
});

test("it is as exact as what it stands before, but never synchronous", async () => {
  const { synchronous, ...same } = new TieredStore({ l2 }).capabilities;
  const { synchronous: _, ...theirs } = l2.capabilities;
  assert.deepEqual(same, theirs);
  assert.equal(synchronous, false);
  for (const mode of MODES) {
    const limiter = new Limiter({ limit, store: new TieredStore({ l2, mode }) });
    assert.throws(() => limiter.handle("key"), { code: "sync_unavailable" });
    assert.throws(() => limiter.consumeSync("key"), { code: "sync_unavailable" });
    await limiter.close();
  }
});

test("strict and several limits are for deny-cache alone", async () => {
  const several = [
    { name: "short", limit: 2, window: "1h" },
    { name: "long", limit: 9, window: "1d" },
  ];
  for (const [options, word] of [
    [{ ...limit, strict: true }, /strict/],
    [several, /several/],
  ]) {
    for (const mode of ["lease", "eager"]) {
      const store = new TieredStore({ l2, mode });
      assert.throws(() => new Limiter({ limit: options, store }), {
        code: "unsupported",
        message: word,
      });
    }
  }
  const store = new TieredStore({ l2 });
  const strict = new Limiter({ limit: { ...limit, strict: true }, store, prefix: "strict" });
  assert.equal((await strict.consume("key")).limit, 5);
  const both = new Limiter({ limit: several, store, prefix: "several" });
  assert.equal((await both.consume("key", { cost: 2 })).limitName, "short");
  for (const local of [false, true]) {
    const denied = await both.consume("key");
    assert.deepEqual([denied.allowed, denied.limitName, denied.local], [false, "short", local]);
  }
});

test("no bound is claimed over a store that loses races", () => {
  const get = () => null;
  const best = storeFrom({ get, compareAndSet: () => true, atomicity: "best-effort" });
  for (const mode of ["lease", "eager"]) {
    assert.throws(() => new TieredStore({ l2: best, mode }), {
      code: "unsupported",
      message: /best-effort/,
    });
  }
  const store = new TieredStore({ l2: best });
  assert.equal(store.capabilities.atomicity, "best-effort");
  assert.throws(() => new Limiter({ limit, store }), { code: "unsupported" });
  new Limiter({ limit, store, bestEffort: true });
});

test("a five-method store does what it can, behind deny-cache alone", async () => {
  const arkos = storeFrom(new MemoryGatewayStore());
  for (const mode of ["lease", "eager"]) {
    const store = new TieredStore({ l2: arkos, mode });
    assert.throws(() => new Limiter({ limit: fixed, store }), { code: "unsupported" });
  }
  const store = new TieredStore({ l2: arkos });
  assert.throws(() => new Limiter({ limit, store }), { code: "unsupported" });
  const limiter = new Limiter({ limit: { ...fixed, limit: 1 }, store });
  const answers = [];
  for (let at = 0; at < 3; at += 1) answers.push(await limiter.consume("key"));
  assert.deepEqual(
    answers.map(({ allowed, local }) => [allowed, local]),
    [
      [true, false],
      [false, false],
      [false, true],
    ],
  );
  const dedup = new Deduplicator({ ttl: "1h", store });
  assert.deepEqual([await dedup.first("id"), await dedup.first("id")], [true, false]);
  assert.equal(await dedup.has("id"), true);
});

test("the bound is a number for each mode and algorithm", () => {
  const bounds = (options) => {
    const store = new TieredStore({ l2, ...options });
    return ["leaky-bucket", "token-bucket", "fixed-window", "sliding-window"].map((algorithm) =>
      store.overAdmissionBound({ limit: 80, window: "1m", algorithm }, 8),
    );
  };
  assert.deepEqual(bounds({ mode: "deny-cache" }), [0, 0, 0, 0]);
  assert.deepEqual(bounds({ mode: "lease" }), [80, 80, 0, 0]);
  assert.deepEqual(bounds({ mode: "lease", leaseUnits: 4 }), [32, 32, 0, 0]);
  assert.deepEqual(bounds({ mode: "eager" }), [70, 70, 70, 70]);
  assert.deepEqual(bounds({ mode: "eager", maxUnsynced: 3 }), [21, 21, 21, 21]);
  const store = new TieredStore({ l2, mode: "eager" });
  assert.equal(store.overAdmissionBound(limit, 1), 0);
  for (const nodes of [0, -1, 1.5, "2", undefined]) {
    assert.throws(() => store.overAdmissionBound(limit, nodes), {
      code: "bad_argument",
      message: /nodes/,
    });
  }
  assert.throws(() => store.overAdmissionBound([limit], 2), {
    code: "bad_argument",
    message: /one limit/,
  });
  for (const wrong of [{ limit: 0, window: "1m" }, { ...limit, rate: 2 }, undefined]) {
    assert.throws(() => store.overAdmissionBound(wrong, 2), {
      code: "bad_argument",
      message: /limit/,
    });
  }
  const strict = { ...limit, strict: true };
  for (const mode of ["lease", "eager"]) {
    assert.throws(() => new TieredStore({ l2, mode }).overAdmissionBound(strict, 2), {
      code: "unsupported",
      message: /strict/,
    });
  }
  assert.equal(new TieredStore({ l2 }).overAdmissionBound(strict, 2), 0);
});

test("a tier may stand before a tier, where it asks for no more than decisions", async () => {
  const { store: table } = sharedMap();
  const inner = new TieredStore({ l2: table });
  const limiter = new Limiter({ limit, store: new TieredStore({ l2: inner }) });
  assert.equal((await limiter.consume("key")).remaining, 9);
  const lease = new TieredStore({ l2: inner, mode: "lease" });
  assert.throws(() => new Limiter({ limit, store: lease }), { code: "unsupported" });
});
