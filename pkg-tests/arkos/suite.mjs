// What every Arkos store of ours does that Arkos' own gets wrong, and what its apps rely on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TidegateError } from "tidegate";

export const START = 1_790_000_000_000;
const DAY_S = 86_400;

export const refused = (code) => (error) => error instanceof TidegateError && error.code === code;

/** `make` answers an empty store on a clock that begins at START, and is moved by hand. */
export function arkosSuite(make) {
  test("a counter counts in the window of its first hit, and starts anew when that is over", async () => {
    const { clock, store } = await make();
    const key = "arkos::rl:socket:message";
    assert.deepEqual(await store.increment(key, 1_000), { count: 1, resetAt: START + 1_000 });
    clock.ms += 999;
    assert.deepEqual(await store.increment(key, 1_000), { count: 2, resetAt: START + 1_000 });
    clock.ms += 1;
    assert.deepEqual(await store.increment(key, 1_000), { count: 1, resetAt: START + 2_000 });
  });

  test("what an increment answered stays what it was", async () => {
    const { store } = await make();
    const first = await store.increment("k", 1_000);
    await store.increment("k", 1_000);
    assert.equal(first.count, 1);
    first.count = 1_000_000;
    assert.equal((await store.increment("k", 1_000)).count, 3);
  });

  test("a window that changes keeps the hits that were counted", async () => {
    const { clock, store } = await make();
    await store.increment("k", 1_000);
    await store.increment("k", 1_000);
    clock.ms += 500;
    assert.deepEqual(await store.increment("k", 2_000), { count: 3, resetAt: START + 2_000 });
    assert.deepEqual(await store.increment("short", 0.25), { count: 1, resetAt: clock.ms + 1 });
  });

  test("any number of windows works, and none is forgotten for another", async () => {
    const { store } = await make();
    for (let window = 1_000; window < 1_500; window += 1)
      await store.increment(`k${window}`, window);
    for (let window = 1_000; window < 1_500; window += 1) {
      assert.equal((await store.increment(`k${window}`, window)).count, 2);
    }
  });

  test("an id is new to exactly one of those who ask at once", async () => {
    const { store } = await make();
    const asked = Array.from({ length: 100 }, () => store.setIfNotExists("arkos::dedup:e:1", 60));
    assert.equal((await Promise.all(asked)).filter((first) => first).length, 1);
  });

  test("an id is there for its seconds, to the millisecond", async () => {
    const { clock, store } = await make();
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
    const { clock, store } = await make();
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
    const { clock, store } = await make();
    await store.set("set", 30 * DAY_S);
    await store.setIfNotExists("first", 30 * DAY_S);
    clock.ms += 30 * DAY_S * 1_000 - 1;
    assert.equal(await store.has("set"), true);
    assert.equal(await store.has("first"), true);
    clock.ms += 1;
    assert.equal(await store.has("set"), false);
    assert.equal(await store.has("first"), false);
  });

  test("counters and ids of the same key are two things", async () => {
    const { store } = await make();
    await store.set("k", 60);
    assert.equal((await store.increment("k", 1_000)).count, 1);
    await store.increment("other", 1_000);
    assert.equal(await store.has("other"), false);
  });

  test("what is cleared is a key and what is below it, and nobody else", async () => {
    const { store } = await make();
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
    await store.clear("arkos::rl:nobody");
  });

  test("any text is an ordinary key", async () => {
    const { store } = await make();
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
    for (const key of keys)
      assert.equal(await store.setIfNotExists(key, 60), true, key.slice(0, 20));
    for (const key of keys) assert.equal((await store.increment(key, 1_000)).count, 1);
    for (const key of keys) assert.equal(await store.setIfNotExists(key, 60), false);
  });

  test("arguments that make no sense are told so, by a promise", async () => {
    const { store } = await make();
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
  });
}
