// Arkos' own tiers let duplicates through, count per process and leave rejections floating. These do not.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter, onEvent, storeFrom } from "tidegate";
import { MemoryGatewayStore, MultiTierArkosGatewayStore } from "tidegate/arkos";
import { MapStore } from "./map-store.mjs";

const rejections = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));
after(() => assert.deepEqual(rejections, []));

/** A store that is slow, fails or does not answer, as the test wants it. */
class Far extends MapStore {
  state = "up";
  answers = [];
  /** How long it takes from a clear to its answer. */
  lingersMs = 0;

  async #reached() {
    if (this.state === "down") throw new Error("the line is down");
    if (this.state === "hung") await new Promise((resolve) => this.answers.push(resolve));
    await pause(1);
  }

  async increment(key, windowMs) {
    await this.#reached();
    return super.increment(key, windowMs);
  }

  async clear(prefix) {
    await this.#reached();
    await super.clear(prefix);
    await pause(this.lingersMs);
  }

  async has(key) {
    await this.#reached();
    return super.has(key);
  }

  async set(key, ttl) {
    await this.#reached();
    return super.set(key, ttl);
  }

  async setIfNotExists(key, ttl) {
    await this.#reached();
    return super.setIfNotExists(key, ttl);
  }

  resume() {
    this.state = "up";
    for (const answer of this.answers.splice(0)) answer();
  }
}

/** Processes with a memory each in front of the shared tiers. */
function fleet(count, ...shared) {
  const errors = [];
  const nodes = Array.from({ length: count }, () => {
    const tiers = [new MemoryGatewayStore(), ...shared];
    return new MultiTierArkosGatewayStore(tiers, { onError: (error) => errors.push(error) });
  });
  return { nodes, errors };
}

const countsOf = async (times, increment) => {
  const counts = [];
  for (let at = 0; at < times; at += 1) counts.push((await increment()).count);
  return counts;
};

test("a new id is new for one process alone, wherever it asks", async () => {
  const { nodes } = fleet(8, new Far());
  const ids = Array.from({ length: 20 }, (_, id) => `id ${id}`);
  const asked = ids.flatMap((id) => nodes.map((node) => node.setIfNotExists(id, 60)));
  const isNew = await Promise.all(asked);
  assert.equal(isNew.filter(Boolean).length, ids.length);
});

test("a seen id is answered by the first tier, and what only another process saw is remembered for a second", async () => {
  const far = new Far();
  const { nodes } = fleet(2, far);
  assert.equal(await nodes[0].setIfNotExists("id", 60), true);
  const asked = far.calls.length;
  assert.equal(await nodes[0].setIfNotExists("id", 60), false);
  assert.equal(await nodes[0].has("id"), true);
  assert.equal(far.calls.length, asked, "known here");
  assert.equal(await nodes[1].has("id"), true);
  assert.equal(await nodes[1].has("id"), true);
  assert.equal(far.calls.length, asked + 1, "promoted");
  await far.clear("id");
  await pause(1_050);
  assert.equal(await nodes[1].has("id"), false, "and no longer than a second");
});

test("what the first tier has lost is not new", async () => {
  const far = new Far();
  const { nodes } = fleet(1, far);
  await far.set("id", 60);
  assert.equal(await nodes[0].setIfNotExists("id", 60), false);
});

test("set writes to all, clear forgets in all", async () => {
  const tiers = [new Far(), new Far(), new Far()];
  const store = new MultiTierArkosGatewayStore(tiers);
  await store.set("a:1", 60);
  for (const tier of tiers) assert.equal(await tier.has("a:1"), true);
  await store.clear("a");
  for (const tier of tiers) assert.equal(await tier.has("a:1"), false);
  await tiers[2].set("deep", 60);
  assert.equal(await store.has("deep"), true);
  for (const tier of tiers) assert.equal(await tier.has("deep"), true, "reads promote");
});

test("increment answers at once, and every tier comes to know every hit", async () => {
  const tiers = [new Far(), new Far()];
  const { nodes } = fleet(2, ...tiers);
  const counts = await countsOf(20, () => nodes[0].increment("key", 60_000));
  assert.deepEqual(
    counts,
    counts.map((_, at) => at + 1),
  );
  await nodes[0].flush();
  for (const tier of tiers) assert.equal((await tier.increment("key", 60_000)).count, 21);
});

test("the first answer does not wait for the rest", async () => {
  const far = new Far();
  far.state = "hung";
  const { nodes } = fleet(1, far);
  const counts = await countsOf(5, () => nodes[0].increment("key", 60_000));
  assert.deepEqual(counts, [1, 2, 3, 4, 5]);
  far.resume();
  await nodes[0].flush();
  assert.equal((await far.increment("key", 60_000)).count, 6);
});

test("counts of other processes flow back", async () => {
  const far = new Far();
  const { nodes } = fleet(2, far);
  await countsOf(5, () => nodes[0].increment("key", 60_000));
  await nodes[0].flush();
  assert.equal((await nodes[1].increment("key", 60_000)).count, 1, "not yet known");
  await nodes[1].flush();
  const next = await nodes[1].increment("key", 60_000);
  assert.equal(next.count, 7);
  const last = await far.increment("key", 60_000);
  assert.equal(next.resetAt, last.resetAt, "the window is the last tier's");
});

test("a limit over eight processes is exceeded by no more than what they have not told yet", async () => {
  const far = new Far();
  const { nodes } = fleet(8, far);
  const limit = { algorithm: "fixed-window", limit: 100, window: "1m" };
  const limiters = nodes.map((node) => new Limiter({ limit, store: storeFrom(node) }));
  let admitted = 0;
  for (let round = 0; round < 40; round += 1) {
    const decisions = await Promise.all(limiters.map((limiter) => limiter.consume("key")));
    admitted += decisions.filter(({ allowed }) => allowed).length;
    await Promise.all(nodes.map((node) => node.flush()));
  }
  assert.ok(admitted >= 100 && admitted <= 107, `${admitted} admitted`);
});

test("hits that the last tier did not answer stay counted, and it is told the next", async () => {
  const far = new Far();
  const { nodes, errors } = fleet(1, far);
  await countsOf(3, () => nodes[0].increment("key", 60_000));
  await nodes[0].flush();
  far.state = "down";
  const events = [];
  const end = onEvent((event) => events.push(event.type));
  assert.deepEqual(await countsOf(3, () => nodes[0].increment("key", 60_000)), [4, 5, 6]);
  await nodes[0].flush();
  end();
  assert.equal(errors.length, 3);
  assert.ok(events.includes("store-error"), "never silent");
  assert.equal((await nodes[0].increment("key", 60_000)).count, 7);
  far.state = "up";
  await nodes[0].flush();
  await nodes[0].increment("key", 60_000);
  await nodes[0].flush();
  assert.equal((await far.increment("key", 60_000)).count, 5);
});

test("hits that the last tier never answered stay counted when it answers, for their window", async () => {
  const far = new Far();
  const { nodes } = fleet(1, far);
  const told = async (window) => {
    const { count } = await nodes[0].increment("key", window);
    await nodes[0].flush();
    return count;
  };
  const hit = async (times, window) => {
    const counts = [];
    for (let at = 0; at < times; at += 1) counts.push(await told(window));
    return counts;
  };
  far.state = "down";
  assert.deepEqual(await hit(3, 60_000), [1, 2, 3]);
  far.state = "up";
  assert.deepEqual(await hit(3, 60_000), [4, 5, 6], "none was known");
  await nodes[0].clear("key");

  assert.deepEqual(await hit(2, 300), [1, 2]);
  await pause(310);
  far.state = "down";
  assert.deepEqual(await hit(3, 300), [1, 2, 3]);
  far.state = "up";
  assert.deepEqual(await hit(3, 300), [4, 5, 6], "an earlier one was known");
  far.state = "down";
  assert.deepEqual(await hit(2, 300), [7, 8], "this one is known");
  await pause(310);
  far.state = "up";
  assert.deepEqual(await hit(3, 300), [1, 2, 3], "theirs is over");
});

test("a window that is over is over, whichever tier says so", async () => {
  const far = new Far();
  const { nodes } = fleet(1, far);
  await countsOf(3, () => nodes[0].increment("key", 60));
  await nodes[0].flush();
  await pause(70);
  assert.equal((await nodes[0].increment("key", 60)).count, 1);
  const clock = { ms: 1_790_000_000_000 };
  const frozen = () => new MemoryGatewayStore({ now: () => clock.ms });
  const shared = frozen();
  const node = new MultiTierArkosGatewayStore([frozen(), shared]);
  await shared.increment("key", 60_000);
  assert.deepEqual(await countsOf(1, () => node.increment("key", 60_000)), [1]);
  await node.flush();
  assert.equal((await node.increment("key", 60_000)).count, 3);
  await node.flush();
  clock.ms += 60_000;
  assert.deepEqual(await node.increment("key", 60_000), { count: 1, resetAt: clock.ms + 60_000 });
});

test("clear waits for the hit under way, and what was counted before is told to none", async () => {
  const far = new Far();
  const { nodes } = fleet(1, far);
  far.state = "hung";
  far.lingersMs = 20;
  await countsOf(5, () => nodes[0].increment("a:key", 60_000));
  await countsOf(2, () => nodes[0].increment("ab", 60_000));
  const cleared = nodes[0].clear("a");
  await pause(5);
  assert.ok(!far.calls.some(([call]) => call === "clear"), "a hit is under way");
  far.resume();
  await cleared;
  assert.equal((await nodes[0].increment("a:key", 60_000)).count, 1);
  await nodes[0].flush();
  assert.equal((await far.increment("a:key", 60_000)).count, 2);
  const told = far.calls.filter(([call, key]) => call === "increment" && key === "ab");
  assert.equal(told.length, 2, "what a store may not clear is told");
});

test("a tier that fails in front is told of, and stood in for", async () => {
  const [near, far] = [new Far(), new Far()];
  const errors = [];
  const store = new MultiTierArkosGatewayStore([near, far], {
    onError: (error) => {
      errors.push(error.message);
      throw new Error("and so does who is told");
    },
  });
  near.state = "down";
  await store.set("id", 60);
  assert.equal(await store.has("id"), true);
  assert.equal(await store.setIfNotExists("id", 60), false);
  assert.equal(await store.setIfNotExists("new", 60), true);
  assert.equal((await store.increment("key", 60_000)).count, 1);
  assert.equal((await store.increment("key", 60_000)).count, 2);
  await store.clear("key");
  assert.ok(errors.length >= 6 && errors.every((message) => message === "the line is down"));
  far.state = "down";
  for (const call of [
    () => store.has("id"),
    () => store.set("id", 60),
    () => store.setIfNotExists("id", 60),
    () => store.clear("key"),
  ]) {
    await assert.rejects(call(), { message: "the line is down" });
  }
  await assert.rejects(store.increment("other", 60_000), { code: "store" });
  await store.flush();
});

test("a tier that hangs holds nobody up, and what it will not be told is reported", async () => {
  const errors = [];
  const far = new Far();
  const onError = (error) => errors.push(error.message);
  const store = new MultiTierArkosGatewayStore([new MemoryGatewayStore(), far], {
    onError,
    timeout: 50,
  });
  far.state = "hung";
  for (let hit = 0; hit < 8; hit += 1) await store.increment("key", 60_000);
  const start = performance.now();
  await store.flush();
  await assert.rejects(store.clear("key"), { code: "timeout" });
  await assert.rejects(store.has("key"), { code: "timeout" });
  await assert.rejects(store.setIfNotExists("key", 1), { code: "timeout" });
  assert.ok(performance.now() - start < 2_000);
  assert.ok(
    errors.some((text) => text.startsWith("7 hits are not told")),
    errors.join("; "),
  );
  // They stay counted here.
  assert.equal((await store.increment("key", 60_000)).count, 1, "cleared in the first tier");
  far.resume();
  await store.flush();
});

test("no more than so many hits of a key wait for a tier", async () => {
  const errors = [];
  const far = new Far();
  const onError = (error) => errors.push(error.message);
  const store = new MultiTierArkosGatewayStore([new MemoryGatewayStore(), far], { onError });
  await store.increment("key", 60_000);
  await store.flush();
  far.state = "hung";
  for (let hit = 0; hit < 1_010; hit += 1) await store.increment("key", 60_000);
  assert.equal(errors.length, 10);
  far.resume();
  await store.flush();
  assert.equal((await far.increment("key", 60_000)).count, 1_002);
  await store.increment("key", 60_000);
  await store.flush();
  // What was not told is counted here all the same.
  assert.equal((await store.increment("key", 60_000)).count, 1_014);
  await store.flush();
});

test("keys whose hits wait keep no others from being followed", async () => {
  const errors = [];
  class Partly extends Far {
    async increment(key, windowMs) {
      if (key.startsWith("hung")) await new Promise((resolve) => this.answers.push(resolve));
      return { count: 1, resetAt: Date.now() + windowMs };
    }
  }
  const far = new Partly();
  const onError = (error) => errors.push(error.message);
  const store = new MultiTierArkosGatewayStore([new MemoryGatewayStore(), far], { onError });
  for (let key = 0; key < 32; key += 1) await store.increment(`hung ${key}`, 60_000);
  for (let key = 0; key < 100_100; key += 1) await store.increment(`key ${key}`, 60_000);
  assert.deepEqual(errors, []);
  far.resume();
  await store.flush();
});

test("nonsense from a tier is an error, and counts nothing", async () => {
  const far = new Far();
  far.increment = async () => ({ count: "7", resetAt: 0 });
  const { nodes, errors } = fleet(1, far);
  assert.deepEqual(await countsOf(3, () => nodes[0].increment("key", 60_000)), [1, 2, 3]);
  await nodes[0].flush();
  assert.equal(errors.length, 3);
  assert.ok(errors.every(({ code, message }) => code === "store" && message.includes('"7"')));
});

test("nonsense is never an answer, whichever tier gives it", async () => {
  for (const nonsense of [undefined, null, {}, { count: Number.NaN, resetAt: 1 }, "OK", 1]) {
    const foreign = new MapStore();
    for (const method of ["increment", "has", "setIfNotExists"]) {
      foreign[method] = async () => nonsense;
    }
    const alone = new MultiTierArkosGatewayStore([foreign]);
    for (const call of [
      () => alone.increment("key", 60_000),
      () => alone.has("id"),
      () => alone.setIfNotExists("id", 60),
    ]) {
      await assert.rejects(call, { name: "TidegateError", code: "store" });
    }
    const errors = [];
    const options = { onError: ({ code, message }) => errors.push(`${code} ${message}`) };
    const store = new MultiTierArkosGatewayStore([foreign, new MapStore()], options);
    assert.equal((await store.increment("key", 60_000)).count, 1);
    assert.equal(await store.has("id"), false);
    assert.equal(await store.setIfNotExists("id", 60), true);
    assert.deepEqual(
      errors.map((text) => /^store the store's (\w+)\(\) must answer/.exec(text)?.[1]),
      ["increment", "has", "has"],
    );
  }
});

test("one tier is that tier, and no tier is a mistake", async () => {
  const store = new MultiTierArkosGatewayStore([new MapStore()]);
  assert.deepEqual(await countsOf(2, () => store.increment("key", 60_000)), [1, 2]);
  assert.equal(await store.setIfNotExists("id", 60), true);
  assert.equal(await store.setIfNotExists("id", 60), false);
  await store.clear("key");
  await store.flush();
  for (const [tiers, options, word] of [
    [[], {}, /tiers/],
    [undefined, {}, /tiers/],
    [[new MapStore(), { increment() {} }], {}, /tiers\[1\]\.clear/],
    [[null], {}, /tiers\[0\]\.increment/],
    [[new MapStore()], { onError: 1 }, /onError/],
    [[new MapStore()], { flush: 1 }, /flush/],
  ]) {
    assert.throws(() => new MultiTierArkosGatewayStore(tiers, options), {
      code: "bad_policy",
      message: word,
    });
  }
  await assert.rejects(store.increment("", 60_000), { code: "bad_argument" });
  await assert.rejects(store.increment("key", 0), { code: "bad_argument" });
  await assert.rejects(store.setIfNotExists("id", -1), { code: "bad_argument" });
});
