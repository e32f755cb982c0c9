// What Arkos' own store gets wrong, and what its apps rely on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TidegateError } from "tidegate";
import { MemoryGatewayStore } from "tidegate/arkos";

const START = 1_790_000_000_000;
const DAY_S = 86_400;

function frozen(options = {}) {
  const clock = { ms: START };
  return { clock, store: new MemoryGatewayStore({ ...options, now: () => clock.ms }) };
}

const refused = (code) => (error) => error instanceof TidegateError && error.code === code;

test("a counter counts in the window of its first hit, and starts anew when that is over", async () => {
  const { clock, store } = frozen();
  const key = "arkos::rl:socket:message";
  assert.deepEqual(await store.increment(key, 1_000), { count: 1, resetAt: START + 1_000 });
  clock.ms += 999;
  assert.deepEqual(await store.increment(key, 1_000), { count: 2, resetAt: START + 1_000 });
  clock.ms += 1;
  assert.deepEqual(await store.increment(key, 1_000), { count: 1, resetAt: START + 2_000 });
});

test("what an increment answered stays what it was", async () => {
  const { store } = frozen();
  const first = await store.increment("k", 1_000);
  await store.increment("k", 1_000);
  assert.equal(first.count, 1);
  first.count = 1_000_000;
  assert.equal((await store.increment("k", 1_000)).count, 3);
});

test("a window's end has one name, in milliseconds since the epoch", async () => {
  const store = new MemoryGatewayStore();
  const before = Date.now();
  const { resetAt } = await store.increment("k", 60_000);
  assert.ok(Number.isInteger(resetAt), String(resetAt));
  assert.ok(Math.abs(resetAt - (before + 60_000)) < 1_000, `${resetAt - before}`);
  for (let hit = 2; hit < 2_000; hit += 1) {
    assert.deepEqual(await store.increment("k", 60_000), { count: hit, resetAt });
  }
});

test("a window that changes keeps the hits that were counted", async () => {
  const { clock, store } = frozen();
  await store.increment("k", 1_000);
  await store.increment("k", 1_000);
  clock.ms += 500;
  assert.deepEqual(await store.increment("k", 2_000), { count: 3, resetAt: START + 2_000 });
  assert.deepEqual(await store.increment("short", 0.25), { count: 1, resetAt: clock.ms + 1 });
});

test("any number of windows works, and none is forgotten for another", async () => {
  const { store } = frozen();
  for (let window = 1_000; window < 1_500; window += 1) await store.increment(`k${window}`, window);
  for (let window = 1_000; window < 1_500; window += 1) {
    assert.equal((await store.increment(`k${window}`, window)).count, 2);
  }
});

test("an id is new to exactly one of those who ask at once", async () => {
  const { store } = frozen();
  const asked = Array.from({ length: 100 }, () => store.setIfNotExists("arkos::dedup:e:1", 60));
  assert.equal((await Promise.all(asked)).filter((first) => first).length, 1);
});

test("an id is there for its seconds, to the millisecond", async () => {
  const { clock, store } = frozen();
  assert.equal(await store.has("id"), false);
  assert.equal(await store.setIfNotExists("id", 1.5), true);
  clock.ms += 1_499;
  assert.equal(await store.has("id"), true);
  assert.equal(await store.setIfNotExists("id", 1.5), false);
  clock.ms += 1;
  assert.equal(await store.has("id"), false);
  assert.equal(await store.setIfNotExists("id", 1.1), true);
  clock.ms += 1_100;
  assert.equal(await store.has("id"), false, "1.1 seconds are 1100 milliseconds");
});

test("set puts an id there whatever was known, and for its own time", async () => {
  const { clock, store } = frozen();
  await store.set("id", 10);
  assert.equal(await store.setIfNotExists("id", 10), false);
  await store.set("id", 100);
  clock.ms += 99_999;
  assert.equal(await store.has("id"), true);
  await store.set("id", 1);
  clock.ms += 1_000;
  assert.equal(await store.has("id"), false);
});

test("thirty days are thirty days", async () => {
  const { clock, store } = frozen();
  await store.set("set", 30 * DAY_S);
  await store.setIfNotExists("first", 30 * DAY_S);
  clock.ms += 30 * DAY_S * 1_000 - 1;
  assert.equal(await store.has("set"), true);
  assert.equal(await store.has("first"), true);
  clock.ms += 1;
  assert.equal(await store.has("set"), false);
  assert.equal(await store.has("first"), false);
});

test("nothing waits on a timer", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const store = new MemoryGatewayStore();
  for (let id = 0; id < 1_000; id += 1) {
    await store.setIfNotExists(`id${id}`, 3_600);
    await store.set(`set${id}`, 3_600);
    await store.increment(`key${id}`, 60_000);
  }
  assert.equal(timers(), before);
});

test("counters and ids of the same key are two things", async () => {
  const { store } = frozen();
  await store.set("k", 60);
  assert.equal((await store.increment("k", 1_000)).count, 1);
  await store.increment("other", 1_000);
  assert.equal(await store.has("other"), false);
});

test("what is cleared is a key and what is below it, and nobody else", async () => {
  const { store } = frozen();
  const cleared = [
    "arkos::rl:user1",
    "arkos::rl:user1:message",
    "arkos::rl:user1:a:b",
    "arkos::rl:user1:",
  ];
  const kept = [
    "arkos::rl:user10",
    "arkos::rl:user10:message",
    "arkos::rl:user",
    "arkos::rl:user2:x",
    "arkos::rl",
  ];
  for (const key of [...cleared, ...kept]) {
    await store.increment(key, 60_000);
    await store.set(key, 60);
  }
  await store.clear("arkos::rl:user1");
  for (const key of cleared) {
    assert.equal(await store.has(key), false, key);
    assert.equal((await store.increment(key, 60_000)).count, 1, key);
  }
  for (const key of kept) {
    assert.equal(await store.has(key), true, key);
    assert.equal((await store.increment(key, 60_000)).count, 2, key);
  }
  await store.clear("nobody");
});

test("any text is an ordinary key", async () => {
  const { store } = frozen();
  const long = "k".repeat(1 << 20);
  const keys = [
    ...[
      "__proto__",
      "constructor",
      "\0",
      "a\nb",
      "*",
      "?[x]",
      "{tag}",
      ":",
      "::",
      "\ud800",
      "\ud801",
      "\ufffd",
    ],
    ...[long, `${long}x`, `a:${long}`, `${long}:a`, ":".repeat(500), ":".repeat(501)],
  ];
  for (const key of keys) assert.equal(await store.setIfNotExists(key, 60), true, key.slice(0, 20));
  for (const key of keys) assert.equal((await store.increment(key, 1_000)).count, 1);
  for (const key of keys) assert.equal(await store.setIfNotExists(key, 60), false);
});

test("clearing agrees with a plain look through all keys", async () => {
  const { store } = frozen();
  const known = new Set();
  let seed = 7;
  const random = (below) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const parts = ["a", "b", "", "ab", "x".repeat(60), "y".repeat(150)];
  const part = () => parts[random(random(3) ? 3 : parts.length)];
  const key = () => {
    const beginning = random(2) ? "a:".repeat(7) : "";
    return beginning + Array.from({ length: 1 + random(5) }, part).join(":") || "a";
  };
  for (let step = 0; step < 20_000; step += 1) {
    const one = key();
    if (random(8) > 0 || one.length > 200) {
      assert.equal(await store.setIfNotExists(one, 60), !known.has(one), one);
      known.add(one);
    } else {
      await store.clear(one);
      for (const other of known) {
        if (other === one || other.startsWith(`${one}:`)) known.delete(other);
      }
    }
  }
  assert.ok(known.size > 100, `${known.size}`);
  for (const one of known) assert.equal(await store.has(one), true, one);
});

test("clearing one of many takes no look at the others", async () => {
  const store = new MemoryGatewayStore();
  const sockets = 50_000;
  for (let id = 0; id < sockets; id += 1) await store.increment(`arkos::rl:s${id}:message`, 60_000);
  const start = performance.now();
  for (let id = 0; id < sockets; id += 2) await store.clear(`arkos::rl:s${id}`);
  const took = performance.now() - start;
  // 25 000 looks through what is left would be a billion steps.
  assert.ok(took < 3_000, `${took} ms`);
  assert.equal((await store.increment("arkos::rl:s0:message", 60_000)).count, 1);
  assert.equal((await store.increment("arkos::rl:s1:message", 60_000)).count, 2);
});

/** How many MiB of the heap are in use, after what is garbage has gone. */
function heapUsed() {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

test("memory is bounded: what is over goes, and what clear needed goes with it", async () => {
  const { clock, store } = frozen({ maxKeys: 1_000 });
  const before = heapUsed();
  for (let id = 0; id < 60_000; id += 1) {
    if (id % 500 === 0) clock.ms += 1_000;
    const { count } = await store.increment(`arkos::rl:socket-${id}:message`, 1_000);
    assert.equal(count, 1, `${id}`);
    assert.equal(await store.setIfNotExists(`arkos::dedup:message:${id}`, 1), true);
  }
  const grown = heapUsed() - before;
  assert.equal(await store.has("arkos::dedup:message:59999"), true, "the store is still in use");
  assert.ok(grown < 3, `${grown} MiB`);
});

test("a key takes little room, however many colons are in it", async () => {
  const { store } = frozen();
  const before = heapUsed();
  for (let id = 0; id < 2_000; id += 1) await store.increment(`${id}${":".repeat(190)}`, 1_000);
  const grown = heapUsed() - before;
  assert.equal((await store.increment(`0${":".repeat(190)}`, 1_000)).count, 2);
  assert.ok(grown < 10, `${grown} MiB`);
});

test("when everything is in use, new keys are over every limit, and nobody is forgotten", async () => {
  const { clock, store } = frozen({ maxKeys: 2 });
  await store.increment("a", 1_000);
  await store.increment("b", 2_000);
  const { count, resetAt } = await store.increment("c", 1_000);
  assert.equal(count, Number.MAX_SAFE_INTEGER);
  assert.equal(resetAt, START + 1_000, "when a is over");
  assert.equal((await store.increment("a", 1_000)).count, 2);
  await store.set("x", 1);
  await store.set("y", 1);
  await assert.rejects(store.setIfNotExists("z", 1), refused("store"));
  await assert.rejects(store.set("z", 1), refused("store"));
  clock.ms += 1_000;
  assert.equal((await store.increment("c", 1_000)).count, 1);
  assert.equal(await store.setIfNotExists("z", 1), true);
});

test("arguments that make no sense are told so, by a promise", async () => {
  const { store } = frozen();
  const bad = refused("bad_argument");
  for (const key of ["", undefined, null, 5, {}]) {
    await assert.rejects(store.increment(key, 1_000), bad);
    await assert.rejects(store.has(key), bad);
    await assert.rejects(store.set(key, 1), bad);
    await assert.rejects(store.setIfNotExists(key, 1), bad);
    await assert.rejects(store.clear(key), bad);
  }
  for (const span of [
    0,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    "60",
    undefined,
    366 * DAY_S * 1_000,
  ]) {
    await assert.rejects(store.increment("k", span), bad, String(span));
    await assert.rejects(store.set("k", span), bad, String(span));
    await assert.rejects(store.setIfNotExists("k", span), bad, String(span));
  }
  await assert.rejects(store.clear("k".repeat(201)), bad);
  assert.throws(() => new MemoryGatewayStore({ maxKeys: 0 }), refused("bad_policy"));
  assert.throws(() => new MemoryGatewayStore({ ttl: 5 }), refused("bad_policy"));
});
