import assert from "node:assert/strict";
import { test } from "node:test";
import { Deduplicator, MemoryStore, storeFrom } from "tidegate";
import { frozenStore, frozenTable } from "./clock.mjs";

/** Every test runs in memory and over a host store. */
const stores = {
  memory: () => frozenStore(),
  "host store": () => {
    const { clock, adapter } = frozenTable();
    return { clock, store: storeFrom(adapter) };
  },
};

for (const [where, make] of Object.entries(stores)) {
  const both = (name, body) => test(`${name} (${where})`, () => body(make()));

  both("first is true for exactly one caller within ttl", async ({ clock, store }) => {
    const dedup = new Deduplicator({ ttl: "1m", store });
    const firsts = await Promise.all(Array.from({ length: 20 }, () => dedup.first("id")));
    assert.equal(firsts.filter(Boolean).length, 1);
    clock.ms += 59_999;
    assert.equal(await dedup.first("id"), false);
    assert.equal(await dedup.has("id"), true);
    clock.ms += 1;
    assert.equal(await dedup.has("id"), false);
    assert.equal(await dedup.first("id"), true);
    const claim = await dedup.claim("id");
    assert.deepEqual([claim.status, claim.result], ["duplicate", undefined]);
  });

  both("a claim is one caller's until it commits or releases", async ({ store }) => {
    const dedup = new Deduplicator({ ttl: "1h", lease: "10s", store });
    const claim = await dedup.claim("id");
    assert.equal(claim.status, "fresh");
    assert.deepEqual(await dedup.claim("id"), { status: "in-progress", retryAfterMs: 10_000 });
    assert.equal(await dedup.first("id"), false, "false while claimed");
    assert.equal(await dedup.has("id"), false, "claimed is not done");
    assert.equal(await claim.release(), true);
    const again = await dedup.claim("id");
    assert.equal(again.status, "fresh");
    const result = { text: 'ünï😀\ud800|\n"\u007f', list: [1, null] };
    assert.equal(await again.commit(result), true);
    assert.deepEqual(await dedup.claim("id"), { status: "duplicate", result });
    assert.equal(await again.release(), false, "done is done");
    await dedup.forget("id");
    assert.equal((await dedup.claim("id")).status, "fresh");
  });

  both(
    "a lost lease can neither commit nor release; one that nobody took still can",
    async ({ clock, store }) => {
      const dedup = new Deduplicator({ ttl: "1h", lease: "10s", store });
      const slow = await dedup.claim("id");
      clock.ms += 10_000;
      const taker = await dedup.claim("id");
      assert.equal(taker.status, "fresh");
      assert.equal(await slow.commit("late"), false);
      assert.equal(await slow.release(), false);
      assert.equal(await taker.commit("taken"), true);
      assert.equal(await taker.commit("taken"), true, "a retry after a lost reply");
      assert.deepEqual(await dedup.claim("id"), { status: "duplicate", result: "taken" });

      const late = await dedup.claim("other");
      clock.ms += 60_000;
      assert.equal(await late.commit("late but alone"), true);
      assert.deepEqual(await dedup.claim("other"), {
        status: "duplicate",
        result: "late but alone",
      });
    },
  );

  both("the same id with another payload is a mismatch", async ({ store }) => {
    const dedup = new Deduplicator({ ttl: "1h", store });
    const claim = await dedup.claim("id", { payload: "ü" });
    assert.equal((await dedup.claim("id", { payload: "u" })).status, "mismatch");
    assert.equal(
      (await dedup.claim("id", { payload: new TextEncoder().encode("ü") })).status,
      "in-progress",
    );
    assert.equal((await dedup.claim("id")).status, "in-progress", "compared when both gave one");
    await claim.commit(1);
    assert.equal((await dedup.claim("id", { payload: "u" })).status, "mismatch");
    assert.equal((await dedup.claim("id", { payload: "ü" })).status, "duplicate");
    await assert.rejects(
      dedup.run("id", () => 2, { payload: "u" }),
      { code: "mismatch" },
    );
  });

  both(
    "run works once, waits for the first, and takes over a dead one",
    async ({ clock, store }) => {
      const dedup = new Deduplicator({ ttl: "1h", lease: "10s", store });
      let runs = 0;
      let finish;
      const work = () => {
        runs += 1;
        return new Promise((resolve) => {
          finish = resolve;
        });
      };
      const first = dedup.run("id", work);
      const second = dedup.run("id", work);
      while (finish === undefined) await new Promise(setImmediate);
      finish({ n: 1 });
      assert.deepEqual(await Promise.all([first, second]), [{ n: 1 }, { n: 1 }]);
      assert.equal(runs, 1);

      await dedup.claim("dead");
      const waiter = dedup.run("dead", () => "taken over");
      await new Promise(setImmediate);
      clock.ms += 10_000;
      assert.equal(await waiter, "taken over");
    },
  );

  both("work that throws releases, and its error is the caller's", async ({ store }) => {
    const dedup = new Deduplicator({ ttl: "1h", store });
    const error = new Error("mine");
    await assert.rejects(
      dedup.run("id", () => {
        throw error;
      }),
      (thrown) => thrown === error,
    );
    assert.equal(await dedup.run("id", () => "again"), "again");
    assert.equal(await dedup.run("nothing", () => {}), undefined);
    assert.equal(await dedup.run("nothing", () => "never"), undefined);
  });

  both("a lease lost meanwhile leaves the work its own value", async ({ clock, store }) => {
    const dedup = new Deduplicator({ ttl: "1h", lease: "10s", store });
    const value = await dedup.run("id", async () => {
      clock.ms += 10_000;
      assert.equal((await dedup.claim("id")).status, "fresh");
      return "mine";
    });
    assert.equal(value, "mine");
  });

  both(
    "results are JSON of at most 64 KiB, and a refused one leaves the claim open",
    async ({ store }) => {
      const dedup = new Deduplicator({ ttl: "1h", store });
      const claim = await dedup.claim("id");
      const loop = {};
      loop.loop = loop;
      for (const result of [
        loop,
        1n,
        () => {},
        Symbol("x"),
        "x".repeat(65_535),
        "é".repeat(32_768),
      ]) {
        await assert.rejects(claim.commit(result), { code: "bad_argument" });
      }
      assert.equal((await dedup.claim("id")).status, "in-progress");
      const largest = "é".repeat(32_767);
      assert.equal(await claim.commit(largest), true);
      assert.equal((await dedup.claim("id")).result, largest);
    },
  );
}

test("options and arguments that make no sense name what is wrong", async () => {
  for (const [options, name] of [
    [{}, "ttl"],
    [{ ttl: 0 }, "ttl"],
    [{ ttl: "1h", lease: "0s" }, "lease"],
    [{ ttl: "1h", onStoreError: "local" }, "onStoreError"],
    [{ ttl: "1h", tll: 1 }, "tll"],
    [{ ttl: "1h", bestEffort: 1 }, "bestEffort"],
  ]) {
    const made = () => new Deduplicator(options);
    assert.throws(
      made,
      (error) => error.code === "bad_policy" && error.message.includes(name),
      name,
    );
  }
  const dedup = new Deduplicator({ ttl: "1h" });
  for (const id of ["", undefined, null, 5, {}]) {
    await assert.rejects(dedup.first(id), { code: "bad_argument" });
    await assert.rejects(dedup.claim(id), { code: "bad_argument" });
  }
  await assert.rejects(dedup.claim("id", { payload: 5 }), { code: "bad_argument" });
  await assert.rejects(dedup.claim("id", { paylod: "x" }), { code: "bad_argument" });
  await assert.rejects(dedup.run("id", "work"), { code: "bad_argument" });
  await dedup.close();
  await assert.rejects(dedup.first("id"), { code: "closed" });
});

test("a full memory store throws rather than forgetting an id", async () => {
  const { clock, store } = frozenStore({ maxKeys: 2 });
  const dedup = new Deduplicator({ ttl: "1m", store });
  assert.deepEqual([await dedup.first("a"), await dedup.first("b")], [true, true]);
  await assert.rejects(dedup.first("c"), { code: "store" });
  assert.equal(await dedup.first("a"), false);
  clock.ms += 60_000;
  assert.equal(await dedup.first("c"), true);
});

test("results beyond maxBytes are kept as done only", async () => {
  const dedup = new Deduplicator({ ttl: "1h", store: new MemoryStore({ maxBytes: 10 }) });
  await (await dedup.claim("a")).commit("12345678");
  await (await dedup.claim("b")).commit("1");
  assert.deepEqual(await dedup.claim("a"), { status: "duplicate", result: "12345678" });
  assert.deepEqual(await dedup.claim("b"), { status: "duplicate", result: undefined });
  await dedup.forget("a");
  await (await dedup.claim("c")).commit("12345678");
  assert.equal((await dedup.claim("c")).result, "12345678", "what is forgotten makes room");
});

test("run does not wait for a store that is gone: it says so, or works without", async () => {
  const down = () => Promise.reject(new Error("down"));
  const store = storeFrom({ get: down, compareAndSet: down });
  const denying = new Deduplicator({ ttl: "1h", store, onStoreError: "deny" });
  await assert.rejects(
    denying.run("id", () => "work"),
    { code: "store" },
  );
  const allowing = new Deduplicator({ ttl: "1h", store, onStoreError: "allow" });
  assert.equal(await allowing.run("id", () => "work"), "work");
});

test("a stored result that is not JSON is corrupt", async () => {
  const { rows, adapter } = frozenTable();
  const dedup = new Deduplicator({ ttl: "1h", store: storeFrom(adapter) });
  await dedup.run("id", () => ({ a: 1 }));
  for (const [key, text] of rows) rows.set(key, text.replace('{"a":1}', '{"a":'));
  await assert.rejects(dedup.claim("id"), { code: "corrupt_state" });
});
