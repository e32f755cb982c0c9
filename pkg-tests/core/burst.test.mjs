import assert from "node:assert/strict";
import { test } from "node:test";
import { BurstDetector, MemoryStore, NoopBurstDetector, storeFrom } from "tidegate";
import { frozenStore, frozenTable } from "./clock.mjs";

async function fired(detector, identity, times, options) {
  let firings = 0;
  for (let n = 0; n < times; n += 1) {
    if ((await detector.observe(identity, options)).fired) firings += 1;
  }
  return firings;
}

test("each window that reaches the threshold fires once", async () => {
  const { clock, store } = frozenStore();
  const detector = new BurstDetector({ threshold: 5, window: 500, store });
  for (let window = 0; window < 4; window += 1) {
    assert.equal(await fired(detector, "a", 4), 0);
    assert.equal(await fired(detector, "a", 20), 1);
    clock.ms += 500;
  }
  assert.equal(await fired(detector, "b", 4), 0, "identities are apart");
});

test("a cooldown holds across windows, and a short one cannot fire twice in one", async () => {
  const { clock, store } = frozenStore();
  const long = new BurstDetector({
    threshold: 2,
    window: "1s",
    cooldown: "1m",
    prefix: "long",
    store,
  });
  const short = new BurstDetector({
    threshold: 2,
    window: "1s",
    cooldown: 100,
    prefix: "short",
    store,
  });
  let [longFirings, shortFirings] = [0, 0];
  for (let tenth = 0; tenth < 600; tenth += 1) {
    longFirings += await fired(long, "a", 3);
    shortFirings += await fired(short, "a", 3);
    clock.ms += 100;
  }
  assert.equal(longFirings, 1);
  assert.equal(shortFirings, 60);
  assert.equal(await fired(long, "a", 3), 1, "the minute is over");
});

test("a burst over the seam of two windows is seen by sliding alone", async () => {
  const { clock, store } = frozenStore();
  clock.ms = Math.ceil(clock.ms / 10_000) * 10_000 - 100;
  const tumbling = new BurstDetector({ threshold: 10, window: "10s", prefix: "t", store });
  const sliding = new BurstDetector({
    threshold: 10,
    window: "10s",
    prefix: "s",
    trigger: "sliding",
    store,
  });
  let [tumbled, slid] = [0, 0];
  for (let event = 0; event < 18; event += 1) {
    if (event === 9) clock.ms += 200;
    tumbled += await fired(tumbling, "a", 1);
    slid += await fired(sliding, "a", 1);
  }
  assert.deepEqual([tumbled, slid], [0, 1]);
});

test("a retry with the firing's nonce is told again, and not counted again", async () => {
  const { store } = frozenStore();
  const detector = new BurstDetector({ threshold: 2, window: "1m", store });
  await detector.observe("a", { nonce: "1" });
  const firing = await detector.observe("a", { nonce: "2" });
  assert.deepEqual([firing.fired, firing.replay, firing.count], [true, false, 2]);
  const replayed = await detector.observe("a", { nonce: "2" });
  assert.deepEqual([replayed.fired, replayed.replay, replayed.count], [true, true, 2]);
  assert.equal((await detector.observe("a", { nonce: "3" })).fired, false);
});

test("one firing over everyone who shares a store", async () => {
  const { adapter, rows } = frozenTable();
  const detectors = Array.from(
    { length: 8 },
    () =>
      new BurstDetector({ threshold: 20, window: "1m", store: storeFrom(adapter), secret: "s" }),
  );
  const firings = await Promise.all(
    detectors.map((detector) => fired(detector, "203.0.113.9", 10)),
  );
  assert.equal(
    firings.reduce((sum, count) => sum + count),
    1,
  );
  assert.ok(
    [...rows.keys()].every((key) => !key.includes("203.0.113.9")),
    "identities are hashed",
  );
});

test("weights count, and the secret changes what is stored", async () => {
  const { adapter, rows } = frozenTable();
  const store = storeFrom(adapter);
  const plain = new BurstDetector({ threshold: 10, window: "1m", store });
  assert.equal((await plain.observe("a", { weight: 9 })).count, 9);
  assert.equal((await plain.observe("a")).fired, true);
  await new BurstDetector({ threshold: 10, window: "1m", store, secret: "s" }).observe("a");
  assert.equal(rows.size, 2);
});

test("options and arguments that make no sense name what is wrong", async () => {
  const good = { threshold: 2, window: "1s" };
  for (const [change, name] of [
    [{ threshold: 0 }, "threshold"],
    [{ threshold: 1.5 }, "threshold"],
    [{ window: "0s" }, "window"],
    [{ cooldown: -1 }, "cooldown"],
    [{ trigger: "rolling" }, "trigger"],
    [{ secret: "" }, "secret"],
    [{ onStoreError: "deny" }, "onStoreError"],
    [{ treshold: 1 }, "treshold"],
  ]) {
    const made = () => new BurstDetector({ ...good, ...change });
    assert.throws(
      made,
      (error) => error.code === "bad_policy" && error.message.includes(name),
      name,
    );
  }
  const bestEffort = storeFrom({ get() {}, compareAndSet: () => true, atomicity: "best-effort" });
  assert.throws(() => new BurstDetector({ ...good, store: bestEffort }), { code: "unsupported" });
  for (const detector of [new BurstDetector(good), new NoopBurstDetector()]) {
    await assert.rejects(detector.observe(""), { code: "bad_argument" });
    await assert.rejects(detector.observe("a", { weight: 0 }), { code: "bad_argument" });
    await assert.rejects(detector.observe("a", { nonce: 5 }), { code: "bad_argument" });
    await assert.rejects(detector.observe("a", { once: "x" }), { code: "bad_argument" });
    await detector.close();
  }
});

test("a store that fails fires nothing when that is to be ignored", async () => {
  const store = storeFrom({
    get() {
      throw new Error("down");
    },
    compareAndSet: () => true,
  });
  const ignoring = new BurstDetector({ threshold: 1, window: "1s", store, onStoreError: "ignore" });
  assert.equal((await ignoring.observe("a")).fired, false);
  const throwing = new BurstDetector({ threshold: 1, window: "1s", store });
  await assert.rejects(throwing.observe("a"), { code: "store" });
});

test("new identities that a full memory store cannot take do not hide the ones that it has", async () => {
  const store = new MemoryStore({ maxKeys: 1 });
  const detector = new BurstDetector({ threshold: 2, window: "1h", store, onStoreError: "ignore" });
  await detector.observe("a");
  for (let n = 0; n < 20; n += 1) {
    await assert.rejects(detector.observe(`other ${n}`), { code: "store" });
  }
  assert.equal((await detector.observe("a")).fired, true);
});
