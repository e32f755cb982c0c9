import assert from "node:assert/strict";
import { test } from "node:test";
import parsePrometheus from "parse-prometheus-text-format";
import {
  BurstDetector,
  Deduplicator,
  Limiter,
  MemoryStore,
  metrics,
  onEvent,
  storeFrom,
} from "tidegate";
import { frozenStore } from "./clock.mjs";

const limit = { limit: 1, window: "1h" };

/** The value of a sample, by what a real parser made of the text. */
function sample(name, labels = {}) {
  const family = parsePrometheus(metrics()).find((family) => family.name === name);
  assert.ok(family, `${name} is there`);
  assert.equal(family.type, "COUNTER");
  const matches = ({ labels: own = {} }) =>
    Object.entries(labels).every(([label, value]) => own[label] === value);
  return Number(family.metrics.find(matches)?.value ?? 0);
}

test("every decision, duplicate, burst, eviction and store error is counted", async () => {
  const limiter = new Limiter({ limit: { ...limit, name: 'odd "name"\\\n' } });
  limiter.consumeSync("a");
  await limiter.consume("a");
  const handle = limiter.handle("b");
  handle.tryConsume();
  handle.tryConsume();
  handle.tryConsume(2);
  await limiter.block("b", "1h");
  handle.tryConsume();
  await limiter.peek("a");
  const of = (reason) => sample("tidegate_decisions_total", { limit: 'odd "name"\\\n', reason });
  assert.deepEqual(["ok", "limited", "never", "blocked"].map(of), [2, 2, 1, 1]);

  const duplicates = sample("tidegate_duplicates_total");
  const dedup = new Deduplicator({ ttl: "1h" });
  for (let n = 0; n < 3; n += 1) await dedup.first("id");
  assert.equal(sample("tidegate_duplicates_total"), duplicates + 2);

  const bursts = sample("tidegate_bursts_total");
  const detector = new BurstDetector({ threshold: 2, window: "1h" });
  for (let n = 0; n < 5; n += 1) await detector.observe("id");
  assert.equal(sample("tidegate_bursts_total"), bursts + 1);

  const store = storeFrom({ get: () => 5, compareAndSet: () => true });
  await assert.rejects(new Limiter({ limit, store }).consume("a"), { code: "store" });
  assert.equal(sample("tidegate_store_errors_total", { code: "store" }), 1);
});

test("limit names are bounded: beyond a hundred they are one", () => {
  for (let n = 0; n < 150; n += 1) {
    new Limiter({ limit: { ...limit, name: `limit ${n}` } }).consumeSync("a");
  }
  const family = parsePrometheus(metrics()).find(({ name }) => name === "tidegate_decisions_total");
  const names = new Set(family.metrics.map(({ labels }) => labels.limit));
  assert.ok(names.size <= 101, String(names.size));
  assert.ok(sample("tidegate_decisions_total", { limit: "other", reason: "ok" }) >= 50);
});

test("listeners hear what happens until they are ended, and cannot change it", async () => {
  const heard = [];
  const endThrowing = onEvent(() => {
    throw new Error("the listener's own");
  });
  const endRejecting = onEvent(() => Promise.reject(new Error("the listener's own")));
  const listener = (event) => heard.push(event);
  const end = onEvent(listener);
  let now = 1_000_000;
  const store = new MemoryStore({ maxKeys: 1, now: () => now });
  const limiter = new Limiter({ limit, store });
  const decision = limiter.consumeSync("a");
  limiter.handle("a").consume();
  limiter.handle("a").tryConsume();
  await limiter.peek("a");
  now += 3_600_000;
  limiter.consumeSync("b");
  const dedup = new Deduplicator({ ttl: "1h" });
  await dedup.first("id");
  await dedup.first("id");
  await new BurstDetector({ threshold: 1, window: "1h" }).observe("who");
  const failing = storeFrom({
    get: () => Promise.reject(new Error("down")),
    compareAndSet: () => true,
  });
  const denied = await new Limiter({ limit, store: failing, onStoreError: "deny" }).consume("a");
  assert.equal(denied.reason, "store-error");
  end();
  end();
  endThrowing();
  endRejecting();
  limiter.consumeSync("a");

  const types = heard.map(({ type }) => type);
  assert.deepEqual(types.sort(), [
    "burst",
    "decision",
    "decision",
    "decision",
    "decision",
    "duplicate",
    "evicted",
    "store-error",
  ]);
  assert.deepEqual(
    heard.find(({ type }) => type === "decision"),
    { type: "decision", key: "a", decision },
  );
  assert.equal(heard.find(({ type }) => type === "burst").identity, "who");
  assert.equal(heard.find(({ type }) => type === "store-error").error.cause.message, "down");
  assert.equal(heard.find(({ type }) => type === "evicted").count, 1);
  assert.throws(() => onEvent("listener"), { code: "bad_argument" });
});

test("a listener that makes calls of its own disturbs none", async () => {
  const { clock, store } = frozenStore({ maxKeys: 2 });
  const limiter = new Limiter({ limit: { limit: 5, window: "1s" }, store });
  const other = new Limiter({ limit: { limit: 900, window: "1s" }, store, prefix: "other" });
  let evictions = 0;
  const end = onEvent(({ type }) => {
    if (type !== "evicted") return;
    evictions += 1;
    other.consumeSync("key", { cost: 500 });
  });
  for (const key of ["a", "b"]) limiter.consumeSync(key);
  clock.ms += 1_000;
  const handle = limiter.handle("c");
  assert.equal(handle.consume().remaining, 4);
  await null;
  end();
  assert.equal(evictions, 1);
  assert.equal(handle.consume().remaining, 3);
  assert.equal((await limiter.peek("c")).remaining, 3);
  assert.equal((await other.peek("key")).remaining, 400);
});

test("a caller that waits for the first is one duplicate, however long it waits", async () => {
  const before = sample("tidegate_duplicates_total");
  const dedup = new Deduplicator({ ttl: "1h" });
  const slow = () => new Promise((resolve) => setTimeout(resolve, 150, "done"));
  const results = await Promise.all([dedup.run("id", slow), dedup.run("id", slow)]);
  assert.deepEqual(results, ["done", "done"]);
  assert.equal(sample("tidegate_duplicates_total"), before + 1);
});

test("a memory store that is full is told of", async () => {
  const before = sample("tidegate_store_errors_total", { code: "store" });
  const dedup = new Deduplicator({ ttl: "1h", store: new MemoryStore({ maxKeys: 1 }) });
  await dedup.first("a");
  await assert.rejects(dedup.first("b"), { code: "store" });
  assert.equal(sample("tidegate_store_errors_total", { code: "store" }), before + 1);
});

test("a key that makes room for one that is only looked at is told of too", async () => {
  const { clock, store } = frozenStore({ maxKeys: 1 });
  const limiter = new Limiter({ limit: { limit: 5, window: "1s" }, store });
  limiter.consumeSync("a");
  clock.ms += 1_000;
  const heard = [];
  const end = onEvent((event) => heard.push(event));
  assert.equal((await limiter.peek("b")).remaining, 5);
  await null;
  end();
  assert.deepEqual(heard, [{ type: "evicted", count: 1 }]);
});
