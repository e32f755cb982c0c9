// KvStore on a KV with a cache at each location, and one write a second for a key.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { BurstDetector, Deduplicator, Limiter, metrics, onEvent } from "tidegate";
import { KvStore } from "tidegate/cloudflare";
import { FakeKv } from "./fake-kv.mjs";
import { Clock } from "./kv-clock.mjs";

const HOUR = { algorithm: "fixed-window", limit: 10, window: "1h" };
const tooMany = () => {
  throw new Error("KV PUT failed: 429 Too Many Requests");
};
const onlyPuts = (fault) => (method) => (method === "PUT" ? fault() : undefined);

let clock;
let kv;
let errors;
let stopListening;

beforeEach(() => {
  clock = new Clock();
  kv = new FakeKv();
  errors = [];
  stopListening = onEvent((event) => event.type === "store-error" && errors.push(event.error));
});

afterEach(() => {
  stopListening();
  clock.restore();
});

const limiterOn = (store, limit = HOUR, options = {}) =>
  new Limiter({ store, limit, bestEffort: true, ...options });
const idsOn = (store, options = {}) =>
  new Deduplicator({ store, ttl: "1h", bestEffort: true, ...options });
const isolate = (location = kv.location()) => new KvStore(location);

async function admittedOf(limiter, calls, key = "key") {
  const all = await Promise.all(Array.from({ length: calls }, () => limiter.consume(key)));
  return all.filter(({ allowed }) => allowed).length;
}

/** What an isolate sees that starts now, elsewhere. */
const seenElsewhere = async (key = "key") => (await limiterOn(isolate()).peek(key)).remaining;

describe("one isolate", () => {
  test("is exact between writes, of which there is one a second", async () => {
    const limiter = limiterOn(isolate());
    assert.equal(await admittedOf(limiter, 50), 10);
    assert.deepEqual([kv.writes, await seenElsewhere()], [1, 9], "the first is written at once");
    await clock.advance(999);
    assert.equal(kv.writes, 1);
    await clock.advance(1);
    assert.deepEqual([kv.writes, kv.refused, await seenElsewhere()], [2, 0, 0]);
    assert.equal(await admittedOf(limiter, 5), 0);
    await clock.advance(5_000);
    assert.equal(kv.writes, 2, "what is denied writes nothing");
  });

  for (const seesItsWrites of [true, false]) {
    const how = seesItsWrites ? "tells of its writes at once" : "does not tell of them at once";
    test(`stays exact when KV ${how}`, async () => {
      const limiter = limiterOn(isolate(kv.location({ seesItsWrites })));
      await limiter.peek("key");
      let admitted = 0;
      for (let second = 0; second < 130; second += 10) {
        admitted += await admittedOf(limiter, 1);
        await clock.advance(10_000);
      }
      assert.equal(admitted, 10);
    });
  }

  test("shares one table among its limiters and ids", async () => {
    const store = isolate();
    const [one, other] = [limiterOn(store), limiterOn(store)];
    const sum = (await Promise.all([admittedOf(one, 8), admittedOf(other, 8)])).reduce(
      (a, b) => a + b,
    );
    assert.equal(sum, 10);
    const firsts = await Promise.all([idsOn(store), idsOn(store)].map((ids) => ids.first("id")));
    assert.deepEqual(firsts.sort(), [false, true]);
  });

  test("writes a busy key once a second, and the last of it, too", async () => {
    const limiter = limiterOn(isolate(), { ...HOUR, limit: 10_000 });
    for (let call = 0; call < 650; call += 1) {
      await limiter.consume("key");
      await clock.advance(100);
    }
    await clock.advance(2_000);
    assert.ok(kv.writes >= 60 && kv.writes <= 67, `${kv.writes} writes in 65 s`);
    assert.deepEqual([kv.refused, errors], [0, []]);
    assert.equal(
      (await limiterOn(isolate(), { ...HOUR, limit: 10_000 }).peek("key")).remaining,
      9_350,
    );
  });

  test("block, unblock, refund and reset go through", async () => {
    const limiter = limiterOn(isolate());
    await limiter.consume("key", { cost: 6 });
    await limiter.refund("key", 2);
    await limiter.block("key", "1d");
    await clock.advance(1_000);
    assert.equal((await limiterOn(isolate()).peek("key")).reason, "blocked");
    await limiter.unblock("key");
    await clock.advance(1_000);
    assert.equal(await seenElsewhere(), 6);
    await limiter.reset("key");
    await clock.advance(1_000);
    assert.equal(await seenElsewhere(), 10);
    assert.deepEqual([kv.refused, errors], [0, []]);
  });

  test("a time to live below a minute is raised, and over by value", async () => {
    const ids = idsOn(isolate(), { ttl: "10s", lease: "5s" });
    assert.equal(await ids.first("id"), true);
    await clock.advance(9_999);
    assert.equal(await ids.first("id"), false);
    await clock.advance(1);
    assert.equal(await ids.first("id"), true);
    assert.deepEqual(errors, []);
    await clock.advance(70_000);
    assert.equal(kv.size, 0, "and KV forgets it");
  });
});

describe("two locations", () => {
  test("exceed a limit together", async () => {
    const [here, there] = [isolate(), isolate()].map((store) => limiterOn(store));
    const admitted = [await admittedOf(here, 20), await admittedOf(there, 20)];
    assert.deepEqual(
      admitted,
      [10, 9],
      "the second saw the first's first write, and none after it",
    );
    await clock.advance(1_000);
    const [far, farther] = [isolate(), isolate()].map((store) => limiterOn(store));
    await Promise.all([far.peek("new"), farther.peek("new")]);
    const both = [await admittedOf(far, 20, "new"), await admittedOf(farther, 20, "new")];
    assert.deepEqual(both, [10, 10], "each location believes for a minute that there is nothing");
  });

  test("pass an id twice, and agree on it a minute later", async () => {
    const [here, there] = [isolate(), isolate()].map((store) => idsOn(store));
    assert.deepEqual([await here.has("id"), await there.has("id")], [false, false]);
    assert.deepEqual([await here.first("id"), await there.first("id")], [true, true]);
    await clock.advance(61_000);
    assert.deepEqual([await here.first("id"), await there.first("id")], [false, false]);
    assert.equal(await idsOn(isolate()).has("id"), true);
  });

  test("a block is seen elsewhere after a minute, by peek and by consume", async () => {
    const denied = { limit: 5, window: "1m" };
    const [here, there, elsewhere] = [1, 2, 3].map(() => limiterOn(isolate(), denied));
    for (const limiter of [there, elsewhere]) await limiter.peek("key");
    await here.block("key", "1d");
    assert.equal((await here.consume("key")).reason, "blocked");
    assert.equal((await there.peek("key")).reason, "ok", "not yet");
    await clock.advance(60_000);
    const reasons = [await there.peek("key"), await elsewhere.consume("key")];
    assert.deepEqual(
      reasons.map(({ reason }) => reason),
      ["blocked", "blocked"],
    );
    assert.equal(kv.writes, 1, "who is denied writes nothing");
  });

  test("refuse each other's writes, and lose nothing of their own", async () => {
    const [here, there] = [isolate(), isolate()].map((store) => limiterOn(store));
    await Promise.all([here, there].map((limiter) => limiter.peek("key")));
    assert.deepEqual([await admittedOf(here, 3), await admittedOf(there, 4)], [3, 4]);
    assert.equal(kv.refused, 1, "of one key in one second");
    assert.match(errors[0].message, /429 Too Many Requests/);
    await clock.advance(30_000);
    assert.deepEqual(
      [await here.peek("key"), await there.peek("key")].map((d) => d.remaining),
      [7, 6],
    );
    assert.ok(kv.writes <= 5, `${kv.writes} writes`);
  });
});

describe("a KV that takes no writes", () => {
  test("429s lose nothing: what was counted is written when KV takes it", async () => {
    kv.fault = onlyPuts(tooMany);
    const limiter = limiterOn(isolate());
    assert.equal(await admittedOf(limiter, 4), 4);
    await clock.advance(7_000);
    assert.equal(errors.length, 4, "tried at once, and 1, 3 and 7 seconds later");
    assert.ok(errors.every(({ code, cause }) => code === "store" && cause.message.includes("429")));
    assert.equal(await admittedOf(limiter, 3), 3);
    kv.fault = undefined;
    await clock.advance(8_000);
    assert.deepEqual([kv.writes, await seenElsewhere()], [1, 3]);
    assert.match(metrics(), /store_errors_total\{code="store"\} [1-9]/);
  });

  test("after five in a row the key's next call, or close, tries again", async () => {
    kv.fault = onlyPuts(tooMany);
    const store = isolate();
    const limiter = limiterOn(store);
    await limiter.consume("key");
    await clock.advance(120_000);
    assert.equal(errors.length, 5);
    await limiter.consume("key");
    await clock.advance(0);
    assert.equal(errors.length, 6, "the next call");
    kv.fault = undefined;
    await clock.until(store.close());
    assert.equal(await seenElsewhere(), 8);
    await store.close();
  });

  test("close writes what is not written, when KV takes it", async () => {
    const store = isolate();
    await admittedOf(limiterOn(store), 6);
    await admittedOf(limiterOn(store), 2, "other");
    assert.deepEqual([await seenElsewhere(), await seenElsewhere("other")], [9, 9]);
    await clock.until(store.close());
    assert.deepEqual([await seenElsewhere(), await seenElsewhere("other")], [4, 8]);
    assert.equal(kv.refused, 0);
  });

  test("answers do not wait for it, and the request is kept until it is done", async () => {
    let put;
    const hanging = new Promise((resolve) => {
      put = resolve;
    });
    kv.fault = onlyPuts(() => hanging);
    const kept = [];
    const store = new KvStore(kv.location(), { waitUntil: (promise) => kept.push(promise) });
    const limiter = limiterOn(store);
    assert.equal((await limiter.consume("key")).remaining, 9);
    assert.equal((await limiter.consume("key")).remaining, 8);
    assert.equal(kept.length, 1);
    put();
    await clock.until(Promise.all(kept));
    assert.equal(await seenElsewhere(), 8, "the second call's, too");
  });

  test("a write that never ends is given up, and made again", async () => {
    kv.fault = onlyPuts(() => new Promise(() => {}));
    const limiter = limiterOn(isolate());
    await admittedOf(limiter, 2);
    await clock.advance(5_000);
    assert.equal(errors[0].code, "timeout");
    kv.fault = undefined;
    await clock.advance(1_000);
    assert.equal(await seenElsewhere(), 8);
  });

  test("a request that was ended takes its write with it, and a later one makes it", async () => {
    const limiter = limiterOn(isolate());
    await admittedOf(limiter, 2);
    clock.dropTimers();
    await clock.advance(19_000);
    await limiter.consume("key");
    await clock.advance(900);
    assert.equal(await seenElsewhere(), 9, "the first may still be at it");
    await clock.advance(100);
    await limiter.consume("key");
    await clock.advance(0);
    assert.equal(await seenElsewhere(), 6);
  });

  test("what is held has a bound: beyond it a call waits for its own write, and fails with it", async () => {
    kv.fault = onlyPuts(tooMany);
    const ids = idsOn(isolate());
    const result = "r".repeat(60_000);
    let committed = 0;
    const commit = async () => {
      const claim = await ids.claim(`id ${committed}`);
      await claim.commit(result);
      committed += 1;
    };
    await assert.rejects(
      async () => {
        while (committed < 400) await commit();
      },
      { code: "store", message: /429/ },
    );
    assert.ok(committed > 270 && committed < 282, `${committed} results of 60 000 in 16 MiB`);
    assert.equal((await ids.claim("id 7")).result, result, "what is held, is");

    await clock.advance(60_000);
    kv.fault = undefined;
    const claim = await ids.claim("small");
    await clock.advance(1_000);
    assert.equal(await claim.commit(result), true, "a second after its last write");
    assert.equal((await idsOn(isolate()).claim("small")).result, result);
    await clock.advance(0);
    assert.ok(kv.writes > 30, "the oldest of what is held are tried again");
    const room = await ids.claim("room again");
    assert.equal(await room.commit(result), true);
    assert.equal((await idsOn(isolate()).claim("id 7")).result, result);
  });
});

describe("a KV that does not answer", () => {
  const throwing = () => {
    throw new Error("KV GET failed: 500 Internal Server Error");
  };

  test("a failure is a store error with its cause, whatever is asked", async () => {
    kv.fault = throwing;
    const limiter = limiterOn(isolate());
    const ids = idsOn(isolate());
    const calls = [() => limiter.consume("key"), () => limiter.peek("key")].concat(
      () => limiter.refund("key"),
      () => limiter.block("key", "1m"),
      () => limiter.reset("key"),
      () => ids.first("id"),
      () => ids.claim("id"),
    );
    for (const call of calls) {
      const error = await call().catch((thrown) => thrown);
      assert.deepEqual(
        [error.code, error.cause.message],
        ["store", "KV GET failed: 500 Internal Server Error"],
      );
    }
  });

  test("one that hangs is a timeout", async () => {
    kv.fault = () => new Promise(() => {});
    const asked = limiterOn(isolate()).consume("key");
    const failed = assert.rejects(asked, { code: "timeout" });
    await clock.advance(500);
    await failed;
  });

  for (const [onStoreError, expected] of [
    ["allow", { allowed: true, reason: "store-error", local: false }],
    ["deny", { allowed: false, reason: "store-error", local: false }],
    ["local", { allowed: true, reason: "ok", local: true }],
  ]) {
    test(`onStoreError "${onStoreError}"`, async () => {
      kv.fault = throwing;
      const { allowed, reason, local } = await limiterOn(isolate(), HOUR, { onStoreError }).consume(
        "key",
      );
      assert.deepEqual({ allowed, reason, local }, expected);
      assert.equal(errors.length, 1);
    });
  }

  test("what is held is decided on without it", async () => {
    const limiter = limiterOn(isolate());
    await limiter.consume("key");
    kv.fault = throwing;
    assert.equal((await limiter.consume("key")).remaining, 8);
  });
});

test("whatever a key is named, it fits KV's 512 bytes and meets no other", async () => {
  const store = new KvStore(kv.location(), { prefix: "a store, né à Paris" });
  const prefix = "p:/é".repeat(10);
  const names = [
    "k".repeat(201),
    "é".repeat(200),
    "\u{1f600}".repeat(200),
    "x".repeat(1_000_000),
  ].concat([
    ".",
    "..",
    "__proto__",
    "a:b",
    "*?[]{}",
    "\0",
    "\n",
    "\ud800",
    "\udfff",
    "%",
    "k".repeat(200),
  ]);
  const limiter = limiterOn(store, HOUR, { prefix });
  const ids = idsOn(store, { prefix });
  for (const [at, name] of names.entries()) {
    await limiter.consume(name, { cost: 1 + (at % 9) });
    assert.equal(await ids.first(name), true);
  }
  for (const [at, name] of names.entries()) {
    assert.equal((await limiter.peek(name)).remaining, 9 - (at % 9));
  }
  assert.deepEqual(errors, []);
  assert.equal(kv.keys.length, 2 * names.length);
});

describe("is refused at once", () => {
  const refused = (make, code, message) => assert.throws(make, { code, message });

  test("a window below a minute, by name", () => {
    const limit = { limit: 5, window: "59s" };
    refused(
      () => limiterOn(isolate(), limit),
      "unsupported",
      /option "window" .* at least 60 s .*"59s"/,
    );
    const two = [
      { ...HOUR, name: "hour" },
      { limit: 5, window: 59_999, name: "short" },
    ];
    refused(() => limiterOn(isolate(), two), "unsupported", /"limit\[1\]\.window" .*59999/);
    limiterOn(isolate(), { limit: 5, window: 60_000 });
  });

  test("limits, ids and alarms, without bestEffort and with it", () => {
    const store = isolate();
    refused(() => new Limiter({ store, limit: HOUR }), "unsupported", /bestEffort/);
    refused(() => new Deduplicator({ store, ttl: "1h" }), "unsupported", /bestEffort/);
    refused(
      () => new BurstDetector({ store, threshold: 2, window: "1h" }),
      "unsupported",
      /best-effort/,
    );
  });

  test("what is no namespace, and options that make no sense", () => {
    refused(() => new KvStore(undefined), "bad_policy", /namespace must be .* but is undefined/);
    refused(() => new KvStore({ get() {} }), "bad_policy", /namespace must be/);
    refused(() => new KvStore(kv.location(), { ttl: 1 }), "bad_policy", /unknown option "ttl"/);
    refused(() => new KvStore(kv.location(), { prefix: "" }), "bad_policy", /option "prefix"/);
    refused(
      () => new KvStore(kv.location(), { waitUntil: true }),
      "bad_policy",
      /option "waitUntil"/,
    );
    // The core hashes what is longer; two of these are too long for a key together.
    const prefix = "p".repeat(200);
    const store = new KvStore(kv.location(), { prefix });
    refused(() => limiterOn(store, HOUR, { prefix }), "bad_policy", /option "prefix" .* 512 bytes/);
    refused(() => idsOn(store, { prefix }), "bad_policy", /option "prefix" .* 512 bytes/);
    limiterOn(isolate(), HOUR, { prefix });
  });

  test("nothing is asked of KV by that", () => assert.equal(kv.writes, 0));
});

test("the capabilities", () => {
  const capabilities = { atomicity: "best-effort", clock: "caller", scope: "fleet" };
  assert.deepEqual(isolate().capabilities, {
    ...capabilities,
    synchronous: false,
    minTtlMs: 60_000,
  });
});
