// What is in process memory: bounded, without timers, and cleared without a look at what stays.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { MemoryGatewayStore } from "tidegate/arkos";
import { arkosSuite, refused, START } from "./suite.mjs";

function frozen(options = {}) {
  const clock = { ms: START };
  return { clock, store: new MemoryGatewayStore({ ...options, now: () => clock.ms }) };
}

arkosSuite(frozen);

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
  const processorTime = () => process.cpuUsage().user;
  const start = processorTime();
  for (let id = 0; id < sockets; id += 1) await store.increment(`arkos::rl:s${id}:message`, 60_000);
  const filled = processorTime();
  for (let id = 0; id < sockets; id += 2) await store.clear(`arkos::rl:s${id}`);
  const cleared = processorTime();
  // 25 000 looks through what is left would be a billion steps.
  assert.ok(cleared - filled < 10 * (filled - start), `${cleared - filled} µs`);
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

test("options that make no sense are told so", async () => {
  const { store } = frozen();
  await assert.rejects(store.clear("k".repeat(201)), refused("bad_argument"));
  assert.throws(() => new MemoryGatewayStore({ maxKeys: 0 }), refused("bad_policy"));
  assert.throws(() => new MemoryGatewayStore({ ttl: 5 }), refused("bad_policy"));
});
