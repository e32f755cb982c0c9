import assert from "node:assert/strict";
import { test } from "node:test";
import { Deduplicator, Limiter, MemoryStore, storeFrom, toArkosStore } from "tidegate";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { MapStore } from "./map-store.mjs";

test("a MemoryStore has the five methods, on its own clock", async () => {
  const { clock, store } = frozenStore();
  const arkos = toArkosStore(store);
  const { resetAt } = await arkos.increment("k", 1_000);
  assert.equal(resetAt, clock.ms + 1_000);
  assert.equal(await arkos.setIfNotExists("id", 1), true);
  assert.equal(store.size, 2);
  await arkos.clear("k");
  await arkos.clear("id");
  assert.equal(store.size, 0);
});

test("the same store has the same counters, whoever asks", async () => {
  const { store } = frozenStore();
  await toArkosStore(store).increment("k", 1_000);
  assert.equal((await toArkosStore(store).increment("k", 1_000)).count, 2);
});

test("what Arkos keeps and what limits keep never meet", async () => {
  const { store } = frozenStore();
  const arkos = toArkosStore(store);
  const limit = { algorithm: "fixed-window", limit: 5, window: 1_000 };
  const limiters = ["tg", "arkos", "arkos:", " "].map(
    (prefix) => new Limiter({ limit, store, prefix }),
  );
  const ids = new Deduplicator({ store, ttl: "1m" });
  for (const limiter of limiters) await limiter.consume("k");
  assert.equal(await ids.first("k"), true);
  assert.equal((await arkos.increment("k", 1_000)).count, 1);
  assert.equal(await arkos.has("k"), false);
  await arkos.clear("k");
  for (const limiter of limiters) assert.equal((await limiter.peek("k")).remaining, 4);
  assert.equal(await ids.has("k"), true);
});

test("a store that cannot clear by what keys begin with is refused", () => {
  for (const store of [storeFrom(frozenTable().adapter), storeFrom(new MapStore())]) {
    assert.throws(() => toArkosStore(store), { code: "unsupported" });
  }
  for (const nothing of [undefined, {}, new Map()]) {
    assert.throws(() => toArkosStore(nothing), { code: "bad_policy" });
  }
  assert.doesNotThrow(() => toArkosStore(new MemoryStore()));
});
