// Hosts whose store fails, in every way that one can: what a caller is told, and that he is told in time.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { BurstDetector, Deduplicator, Limiter, onEvent, storeFrom, TidegateError } from "tidegate";
import { mapStore } from "./stores/map.mjs";

const limit = { limit: 2, window: "1h" };
const timeout = 60;
/** What a busy machine may need on top of a deadline. */
const slack = 400;

const never = () => new Promise(() => {});
const good = () => mapStore(() => 1_700_000_000_000);
const failure = new Error("connection lost");
const rejects = async () => {
  throw failure;
};
const throws = () => {
  throw failure;
};

const unhandled = [];
const collect = (reason) => unhandled.push(reason);
let events;
let stopListening;

beforeEach(() => {
  process.on("unhandledRejection", collect);
  events = [];
  stopListening = onEvent((event) => events.push(event));
});

afterEach(async () => {
  await pause(0);
  process.off("unhandledRejection", collect);
  stopListening();
  assert.deepEqual(unhandled, []);
});

/** The outcome of a promise that has to settle before its deadline, and how long it took. */
async function inTime(promise, deadlineMs = timeout) {
  const start = performance.now();
  const late = pause(deadlineMs + slack, "late", { ref: false });
  const outcome = await Promise.race([
    promise.then(
      (value) => ({ value }),
      (error) => ({ error }),
    ),
    late,
  ]);
  assert.notEqual(outcome, "late", "a promise did not settle");
  return { ...outcome, tookMs: performance.now() - start };
}

async function fails(promise, code, message = /./) {
  const { value, error } = await inTime(promise);
  assert.ok(error instanceof TidegateError, `expected "${code}", but got ${JSON.stringify(value)}`);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return error;
}

/** Every call that asks the store. */
function calls(adapter) {
  const store = storeFrom(adapter);
  const limiter = new Limiter({ limit, store, timeout });
  const ids = new Deduplicator({ ttl: "1h", store, timeout });
  const detector = new BurstDetector({ threshold: 2, window: "1h", store, timeout });
  return {
    consume: () => limiter.consume("key"),
    peek: () => limiter.peek("key"),
    refund: () => limiter.refund("key"),
    block: () => limiter.block("key", "1m"),
    unblock: () => limiter.unblock("key"),
    reset: () => limiter.reset("key"),
    first: () => ids.first("id"),
    has: () => ids.has("id"),
    claim: () => ids.claim("id"),
    run: () => ids.run("id", () => assert.fail("the work ran without a claim")),
    forget: () => ids.forget("id"),
    observe: () => detector.observe("identity"),
  };
}

// ── a store that does not answer, or fails ──────────────────────────────

const broken = [
  ["get() never answers", { get: never }, "timeout"],
  ["now() never answers", { now: never }, "timeout"],
  ["get() rejects", { get: rejects }, "store"],
  ["get() throws", { get: throws }, "store"],
  ["now() rejects", { now: rejects }, "store"],
  ["now() throws", { now: throws }, "store"],
];

describe("every call says so, in time, when", () => {
  for (const [title, fault, code] of broken) {
    test(title, async () => {
      const adapter = { ...good(), ...fault };
      const all = Object.values(calls(adapter)).map(async (call) => {
        const error = await fails(call(), code);
        if (code === "store") assert.equal(error.cause, failure);
      });
      await Promise.all(all);
    });
  }

  for (const [title, compareAndSet, code] of [
    ["compareAndSet() never answers", never, "timeout"],
    ["compareAndSet() rejects", rejects, "store"],
    ["compareAndSet() throws", throws, "store"],
  ]) {
    test(title, async () => {
      const { consume, block, first, claim, observe } = calls({ ...good(), compareAndSet });
      await Promise.all([consume, block, first, claim, observe].map((call) => fails(call(), code)));
    });
  }

  for (const thrown of [undefined, null, 0, "text", { code: "store" }, Symbol("odd")]) {
    test(`what is thrown is ${String(thrown)}`, async () => {
      const adapter = { ...good(), get: () => Promise.reject(thrown) };
      const error = await fails(calls(adapter).consume(), "store");
      assert.equal(error.cause, thrown);
    });
  }
});

test("what a store answers after the deadline changes nothing, and rejects nothing", async () => {
  const settle = [];
  const later = () => new Promise((resolve, reject) => settle.push({ resolve, reject }));
  const adapter = { ...good(), get: later };
  const { consume, first, observe } = calls(adapter);
  await Promise.all([consume, first, observe].map((call) => fails(call(), "timeout")));
  settle[0].resolve(null);
  settle[1].reject(failure);
  settle[2].resolve(7);
  await pause(20);
});

// ── a store that answers nonsense ───────────────────────────────────────

describe("nonsense is an error, and never an empty state:", () => {
  const texts = [0, 1, NaN, true, false, {}, [], 1n, Symbol("odd"), () => "", new Uint8Array(2)];
  for (const answer of texts) {
    test(`get() answers ${typeof answer} ${String(answer)}`, async () => {
      const all = calls({ ...good(), get: async () => answer });
      for (const call of [all.consume, all.peek, all.first, all.claim, all.observe]) {
        await fails(call(), "store", /get\(\)/);
      }
    });
  }

  for (const answer of [undefined, null, 0, 1, "OK", "true", {}, [], 1n, { affectedRows: 1 }]) {
    test(`compareAndSet() answers ${typeof answer} ${String(answer)}`, async () => {
      const all = calls({ ...good(), compareAndSet: async () => answer });
      for (const call of [all.consume, all.block, all.first, all.claim, all.observe]) {
        await fails(call(), "store", /compareAndSet\(\)/);
      }
    });
  }

  for (const answer of [undefined, null, NaN, -1, Infinity, 2 ** 54, "1", 1n, {}, new Date(5)]) {
    test(`now() answers ${typeof answer} ${String(answer)}`, async () => {
      const all = calls({ ...good(), now: async () => answer });
      for (const call of [all.consume, all.first, all.observe]) {
        await fails(call(), "store", /now\(\)/);
      }
    });
  }

  /** A record of each kind, as it is stored. */
  async function records() {
    const kept = new Map();
    const adapter = good();
    const keeping = {
      ...adapter,
      compareAndSet(key, expected, next, ttlMs) {
        kept.set(/:([lmb]):/.exec(key)[1], next);
        return adapter.compareAndSet(key, expected, next, ttlMs);
      },
    };
    const { consume, first, observe } = calls(keeping);
    await Promise.all([consume(), first(), observe()]);
    return { limit: kept.get("l"), message: kept.get("m"), burst: kept.get("b") };
  }

  test("texts that are not ours", async () => {
    const { limit: record } = await records();
    const texts = ["", " ", "null", "{}", "0", "garbage", "\0", "é", "\ud800", "x".repeat(1e6)];
    const damaged = [
      record.slice(0, record.length / 2),
      record.slice(1),
      `${record} `,
      ` ${record}`,
      record + record,
    ];
    for (const text of [...texts, ...damaged]) {
      const all = calls({ ...good(), get: async () => text });
      for (const call of [all.consume, all.peek, all.refund]) {
        const { value, error } = await inTime(call());
        assert.equal(
          error?.code,
          "corrupt_state",
          `${JSON.stringify(text.slice(0, 60))}: ${value}`,
        );
      }
    }
  });

  test("records of another kind, and of a version to come", async () => {
    const kinds = await records();
    const asked = { limit: "consume", message: "first", burst: "observe" };
    for (const [kind, call] of Object.entries(asked)) {
      for (const [other, record] of Object.entries(kinds)) {
        const adapter = { ...good(), get: async () => record };
        if (other !== kind) await fails(calls(adapter)[call](), "corrupt_state");
        const newer = { ...good(), get: async () => record.replace(/^1/, "9") };
        await fails(calls(newer)[call](), "corrupt_state");
      }
    }
  });

  test("but undefined is absent, and what is thenable is waited for", async () => {
    const adapter = good();
    const lazy = (call) => ({
      // biome-ignore lint/suspicious/noThenProperty: query builders are thenable without being promises
      then: (resolve, reject) => call().then(resolve, reject),
    });
    const builder = {
      get: (key) => lazy(async () => (await adapter.get(key)) ?? undefined),
      compareAndSet: (...args) => lazy(() => adapter.compareAndSet(...args)),
      now: () => lazy(adapter.now),
    };
    const limiter = new Limiter({ limit, store: storeFrom(builder), timeout: "5s" });
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push((await limiter.consume("key")).allowed);
    assert.deepEqual(answers, [true, true, false]);
  });
});

// ── a store that loses every race ───────────────────────────────────────

describe("a store that loses every race", () => {
  test("is contention after a bounded number of tries", async () => {
    let tries = 0;
    const adapter = {
      ...good(),
      compareAndSet: () => {
        tries += 1;
        return false;
      },
    };
    const store = storeFrom(adapter);
    const limiter = new Limiter({ limit, store, timeout: "10s" });
    await assert.rejects(limiter.consume("key"), { code: "contention" });
    assert.ok(tries > 1 && tries <= 1_000, `${tries} tries`);
    const ids = new Deduplicator({ ttl: "1h", store, timeout: "10s" });
    await assert.rejects(ids.first("id"), { code: "contention" });
    const detector = new BurstDetector({ threshold: 2, window: "1h", store, timeout: "10s" });
    await assert.rejects(detector.observe("identity"), { code: "contention" });
    // It answers, so it is not left alone.
    for (let i = 0; i < 10; i += 1) await assert.rejects(limiter.consume("key"));
    const before = tries;
    await assert.rejects(limiter.consume("key"), { code: "contention" });
    assert.ok(tries > before);
  });

  test("is stopped by the deadline where each try takes its time", async () => {
    let asked = 0;
    const slowly =
      (call) =>
      async (...args) => {
        asked += 1;
        await pause(15);
        return call(...args);
      };
    const adapter = { get: slowly(() => null), compareAndSet: slowly(() => false) };
    const limiter = new Limiter({ limit, store: storeFrom(adapter), timeout: 100 });
    const { error, tookMs } = await inTime(limiter.consume("key"), 100);
    assert.equal(error.code, "timeout");
    assert.ok(tookMs >= 95, `${tookMs} ms`);
    assert.ok(asked >= 3, "several calls share the deadline");
  });
});

test("the deadline covers all the store calls of one decision", async () => {
  const adapter = good();
  const slowly =
    (call) =>
    async (...args) => {
      await pause(40);
      return call(...args);
    };
  const slow = {
    get: slowly(adapter.get),
    now: slowly(adapter.now),
    compareAndSet: slowly(adapter.compareAndSet),
  };
  const hasty = new Limiter({ limit, store: storeFrom(slow), timeout: 100 });
  const { error, tookMs } = await inTime(hasty.consume("key"), 100);
  assert.equal(error.code, "timeout");
  assert.ok(tookMs < 100 + slack, `${tookMs} ms`);
  const patient = new Limiter({ limit, store: storeFrom(slow), timeout: "5s" });
  assert.equal((await patient.consume("other")).allowed, true);
});

// ── expiry ──────────────────────────────────────────────────────────────

test("a store that expires late decides as one that expires to the millisecond", async () => {
  let now = 1_700_000_000_000;
  const prompt = mapStore(() => now);
  const kept = new Map();
  const late = {
    get: (key) => kept.get(key),
    compareAndSet(key, expected, next, ttlMs) {
      assert.ok(Number.isSafeInteger(ttlMs) && ttlMs >= 1, `a time to live of ${ttlMs} ms`);
      if ((kept.get(key) ?? null) !== expected) return false;
      kept.set(key, next);
      return true;
    },
    now: () => now,
  };
  const users = [prompt, late].map((adapter) => {
    const store = storeFrom(adapter);
    const policies = [
      { limit: 4, window: 1_000 },
      { name: "fixed", algorithm: "fixed-window", limit: 9, window: 2_500 },
      { name: "sliding", algorithm: "sliding-window", limit: 7, window: 1_700 },
    ];
    return {
      limiter: new Limiter({ store, limit: policies, timeout: "5s" }),
      ids: new Deduplicator({ store, ttl: 900, lease: 300, timeout: "5s" }),
      detector: new BurstDetector({ store, threshold: 3, window: 700, timeout: "5s" }),
    };
  });
  const status = ({ status, retryAfterMs }) => ({ status, retryAfterMs });
  for (let step = 0; step < 600; step += 1) {
    now += (step * 7_919) % 1_013;
    const key = `key ${step % 3}`;
    const answers = await Promise.all(
      users.map(async ({ limiter, ids, detector }) => [
        await limiter.consume(key, { cost: 1 + (step % 3) }),
        step % 17 === 0 ? await limiter.block(key, 2_000) : undefined,
        step % 11 === 0 ? await limiter.refund(key, 2) : undefined,
        await limiter.peek(key),
        await ids.first(`${key} first`),
        status(await ids.claim(`${key} claim`)),
        await detector.observe(key),
      ]),
    );
    assert.deepEqual(answers[1], answers[0], `step ${step}`);
  }
});

// ── what a failure means ────────────────────────────────────────────────

describe("onStoreError", () => {
  const faults = [
    ["a store that never answers", { ...good(), get: never }, "timeout", "timeout"],
    ["a store that fails", { ...good(), get: rejects }, "store-error", "store"],
  ];
  for (const [title, adapter, reason, code] of faults) {
    const store = storeFrom(adapter);
    const told = () => events.filter(({ type }) => type === "store-error");

    test(`"throw": ${title}`, async () => {
      const limiter = new Limiter({ limit, store, timeout, onStoreError: "throw" });
      await fails(limiter.consume("key"), code);
      assert.equal(told().length, 1);
      assert.equal(told()[0].error.code, code);
    });

    for (const allowed of [true, false]) {
      const onStoreError = allowed ? "allow" : "deny";

      test(`"${onStoreError}": ${title}`, async () => {
        const limiter = new Limiter({ limit, store, timeout, onStoreError });
        for (const call of [() => limiter.consume("key"), () => limiter.peek("key")]) {
          const { value } = await inTime(call());
          const { retryAfterMs, resetAfterMs, ...rest } = value;
          const shape = {
            limit: 2,
            remaining: 0,
            limitName: "default",
            local: false,
            dryRun: false,
          };
          assert.deepEqual(rest, { allowed, reason, ...shape });
          assert.ok(allowed ? retryAfterMs === 0 : retryAfterMs > 0 && retryAfterMs <= 60_000);
          assert.ok(Number.isFinite(resetAfterMs) && resetAfterMs >= 0);
        }
        assert.equal(told().length, 2);
      });

      test(`"${onStoreError}", for message ids: ${title}`, async () => {
        const ids = new Deduplicator({ ttl: "1h", store, timeout, onStoreError });
        assert.equal((await inTime(ids.first("id"))).value, allowed);
        assert.equal((await inTime(ids.has("id"))).value, !allowed);
        const { value: claim } = await inTime(ids.claim("id"));
        assert.equal(claim.status, allowed ? "fresh" : "in-progress");
        if (allowed) {
          assert.equal(await claim.commit("result"), true);
          assert.equal(await claim.release(), true);
          assert.equal((await inTime(ids.run("id", () => "done"))).value, "done");
        } else {
          assert.ok(claim.retryAfterMs > 0 && Number.isFinite(claim.retryAfterMs));
        }
        assert.ok(told().length >= 3);
      });
    }

    test(`"local": ${title}`, async () => {
      const limiter = new Limiter({ limit, store, timeout, onStoreError: "local" });
      for (const expected of ["ok", "ok", "limited"]) {
        const { value } = await inTime(limiter.consume("key"));
        assert.equal(value.reason, expected);
        assert.equal(value.allowed, expected === "ok");
        assert.equal(value.local, true);
      }
      assert.equal(told().length, 3);
      await limiter.close();
      await assert.rejects(limiter.consume("key"), { code: "closed" });
    });

    test(`"ignore", for bursts: ${title}`, async () => {
      const options = { threshold: 1, window: "1h", store, timeout };
      const detector = new BurstDetector({ ...options, onStoreError: "ignore" });
      const { value } = await inTime(detector.observe("identity"));
      assert.deepEqual([value.fired, value.replay], [false, false]);
      assert.equal(told().length, 1);
      await fails(new BurstDetector(options).observe("identity"), code);
    });
  }

  test("a wrong argument is the caller's under every policy", async () => {
    for (const onStoreError of ["throw", "allow", "deny", "local"]) {
      const store = storeFrom({ ...good(), get: rejects });
      const limiter = new Limiter({ limit, store, timeout, onStoreError });
      await fails(limiter.consume("key", { cost: 0 }), "bad_argument");
      await fails(limiter.consume(""), "bad_argument");
      await fails(limiter.block("key", "soon"), "bad_argument");
    }
  });

  test("a change that did not happen is an error under every policy", async () => {
    for (const onStoreError of ["throw", "allow", "deny", "local"]) {
      const store = storeFrom({ ...good(), get: rejects });
      const limiter = new Limiter({ limit, store, timeout, onStoreError });
      for (const call of ["refund", "unblock", "reset"]) await fails(limiter[call]("key"), "store");
    }
  });
});

// ── the circuit breaker ─────────────────────────────────────────────────

describe("a store that keeps failing", () => {
  /** A store that fails until it is mended, and counts how often it is asked. */
  function mendable(fault) {
    const adapter = good();
    const state = { asked: 0, broken: true };
    const store = storeFrom({
      ...adapter,
      get(key) {
        state.asked += 1;
        return state.broken ? fault() : adapter.get(key);
      },
    });
    return { state, store };
  }

  test("is left alone for a moment, then asked again, and used when it answers", async () => {
    const { state, store } = mendable(rejects);
    const limiter = new Limiter({ limit, store, timeout, onStoreError: "deny" });
    for (let i = 0; i < 5; i += 1) await limiter.consume("key");
    assert.equal(state.asked, 5);
    for (let i = 0; i < 100; i += 1) {
      const { allowed, reason, retryAfterMs } = await limiter.consume("key");
      assert.deepEqual([allowed, reason], [false, "store-error"]);
      assert.ok(retryAfterMs > 0 && retryAfterMs <= 5_000);
    }
    assert.equal(state.asked, 5, "the store was asked while it should be left alone");

    await pause(260);
    await Promise.all(Array.from({ length: 20 }, () => limiter.consume("key")));
    assert.equal(state.asked, 6, "one call finds out whether it answers again");

    state.broken = false;
    await pause(510);
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push((await limiter.consume("key")).reason);
    assert.deepEqual(answers, ["ok", "ok", "limited"]);
    assert.ok(state.asked >= 9);
  });

  test("costs no call its whole deadline any more", async () => {
    const { store } = mendable(never);
    const limiter = new Limiter({ limit, store, timeout, onStoreError: "allow" });
    await Promise.all(Array.from({ length: 5 }, () => limiter.consume("key")));
    const { value, tookMs } = await inTime(limiter.consume("key"));
    assert.equal(value.reason, "timeout");
    assert.ok(tookMs < timeout / 2, `${tookMs} ms`);
  });

  test('under "throw" the error says what happened last, at once', async () => {
    const { state, store } = mendable(rejects);
    const limiter = new Limiter({ limit, store, timeout });
    for (let i = 0; i < 8; i += 1) {
      const error = await fails(limiter.consume("key"), "store");
      assert.equal(error.cause, failure);
    }
    assert.equal(state.asked, 5);
  });
});

test("200 calls at once on a failing store all settle", async () => {
  for (const get of [never, rejects, throws, async () => 7, async () => "garbage"]) {
    const all = calls({ ...good(), get });
    const started = Object.values(all).flatMap((call) => Array.from({ length: 20 }, () => call()));
    for (const outcome of await Promise.all(started.map((promise) => inTime(promise, 2_000)))) {
      assert.ok(outcome.error instanceof TidegateError, String(outcome.value));
    }
  }
});
