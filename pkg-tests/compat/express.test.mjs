// What express-rate-limit's own tests ask of a store, and the store behind the real middleware.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import express from "express";
import { rateLimit } from "express-rate-limit";
import { MemoryStore, storeFrom } from "tidegate";
import { expressRateLimitStore } from "tidegate/compat";
import { MapStore } from "../arkos/map-store.mjs";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { served, statuses } from "./served.mjs";

const minute = 60_000;
const kinds = [
  ["memory", frozenStore],
  [
    "a conditional write",
    () => {
      const { clock, adapter } = frozenTable();
      return { clock, store: storeFrom(adapter) };
    },
  ],
];

function started(make, options) {
  const { clock, store } = make();
  const tested = expressRateLimitStore(store, options);
  tested.init({ windowMs: minute });
  return { clock, store, tested };
}

for (const [name, make] of kinds) {
  test(`${name}: the first hit is 1, the next is 2`, async () => {
    const { tested } = started(make);
    assert.equal((await tested.increment("key")).totalHits, 1);
    assert.equal((await tested.increment("key")).totalHits, 2);
    assert.equal((await tested.increment("other")).totalHits, 1);
  });

  test(`${name}: the reset time is a Date at the window's end`, async () => {
    const { clock, tested } = started(make);
    clock.ms += 1;
    const { resetTime } = await tested.increment("key");
    assert.ok(resetTime instanceof Date);
    assert.ok(Math.abs(resetTime.getTime() - (Date.now() + minute)) < 1_000);
    clock.ms += minute / 2;
    const later = (await tested.increment("key")).resetTime;
    assert.ok(Math.abs(later.getTime() - (Date.now() + minute / 2)) < 1_000);
  });

  test(`${name}: when the window is over everybody starts anew`, async () => {
    const { clock, tested } = started(make);
    await tested.increment("one");
    await tested.increment("two");
    clock.ms += minute - 1;
    assert.equal((await tested.increment("one")).totalHits, 2);
    clock.ms += 1;
    assert.equal((await tested.increment("one")).totalHits, 1);
    assert.equal((await tested.increment("two")).totalHits, 1);
  });

  test(`${name}: decrement takes one hit back, and never makes a client`, async () => {
    const { clock, tested } = started(make);
    await tested.increment("key");
    await tested.increment("key");
    await tested.decrement("key");
    assert.equal((await tested.increment("key")).totalHits, 2);
    for (let again = 0; again < 5; again += 1) await tested.decrement("key");
    assert.equal(await tested.get("key"), undefined);
    assert.equal((await tested.increment("key")).totalHits, 1);
    await tested.decrement("nobody");
    assert.equal((await tested.increment("nobody")).totalHits, 1);
    clock.ms += minute;
    await tested.decrement("key");
    assert.equal((await tested.increment("key")).totalHits, 1, "not from the next window");
  });

  test(`${name}: resetKey forgets one client`, async () => {
    const { tested } = started(make);
    await tested.increment("one");
    await tested.increment("two");
    await tested.resetKey("one");
    assert.equal((await tested.increment("one")).totalHits, 1);
    assert.equal((await tested.increment("two")).totalHits, 2);
  });

  test(`${name}: get tells and changes nothing`, async () => {
    const { tested } = started(make);
    assert.equal(await tested.get("key"), undefined);
    await tested.increment("key");
    assert.equal((await tested.get("key")).totalHits, 1);
    assert.ok((await tested.get("key")).resetTime instanceof Date);
    assert.equal((await tested.increment("key")).totalHits, 2);
  });

  test(`${name}: hits that come at once are all counted`, async () => {
    const { tested } = started(make);
    const hits = await Promise.all(Array.from({ length: 50 }, () => tested.increment("key")));
    const counts = hits.map(({ totalHits }) => totalHits).sort((a, b) => a - b);
    assert.deepEqual(
      counts,
      Array.from({ length: 50 }, (_, at) => at + 1),
    );
  });
}

test("resetAll forgets everybody, where nobody else shares the store", async () => {
  const { tested } = started(frozenStore);
  await tested.increment("one");
  await tested.increment("two");
  for (let again = 0; again < 3; again += 1) {
    await tested.resetAll();
    assert.equal((await tested.increment("one")).totalHits, 1);
    assert.equal((await tested.increment("two")).totalHits, 1);
  }
  assert.equal(tested.localKeys, true);
  const shared = expressRateLimitStore(storeFrom(frozenTable().adapter));
  assert.equal(shared.resetAll, undefined);
  assert.equal(shared.localKeys, false);
});

test("two of one process count apart, unless they are told to share", async () => {
  const { store } = frozenStore();
  const make = (options) => {
    const made = expressRateLimitStore(store, options);
    made.init({ windowMs: minute });
    return made;
  };
  const [one, two] = [make(), make()];
  await one.increment("key");
  assert.equal((await two.increment("key")).totalHits, 1);
  assert.notEqual(one.prefix, two.prefix);
  const [left, right] = [make({ prefix: "app" }), make({ prefix: "app" })];
  await left.increment("key");
  assert.equal((await right.increment("key")).totalHits, 2);
});

test("a fleet counts together", async () => {
  const { adapter } = frozenTable();
  const nodes = [1, 2, 3].map(() => {
    const node = expressRateLimitStore(storeFrom(adapter));
    node.init({ windowMs: minute });
    return node;
  });
  await Promise.all(nodes.map((node) => node.increment("key")));
  assert.equal((await nodes[0].increment("key")).totalHits, 4);
});

test("a window that makes no sense fails every hit instead of counting in another", async () => {
  const { store } = frozenStore();
  const tested = expressRateLimitStore(store);
  await assert.rejects(tested.increment("key"), { code: "bad_policy" });
  tested.init({ windowMs: minute });
  assert.throws(() => tested.init({ windowMs: -1 }), { code: "bad_argument" });
  await assert.rejects(tested.increment("key"), { code: "bad_policy" });
});

test("what is no store of ours, or no option, is refused at once", () => {
  for (const nothing of [undefined, {}, new Map()]) {
    assert.throws(() => expressRateLimitStore(nothing), { code: "bad_policy" });
  }
  assert.throws(() => expressRateLimitStore(new MemoryStore(), { ttl: 5 }), { code: "bad_policy" });
  const bestEffort = storeFrom({ ...frozenTable().adapter, atomicity: "best-effort" });
  assert.throws(() => expressRateLimitStore(bestEffort), { code: "unsupported" });
  assert.ok(expressRateLimitStore(bestEffort, { bestEffort: true }));
});

/** An app with the real middleware, whose complaints fail the test. */
async function app(t, options) {
  const complaints = [];
  const logger = {
    error: (...text) => complaints.push(text),
    warn: (...text) => complaints.push(text),
  };
  const application = express();
  application.use(rateLimit({ windowMs: minute, limit: 3, logger, ...options }));
  application.get("/", (_request, response) => response.send("ok"));
  application.get("/fails", (_request, response) => response.status(500).send("no"));
  application.use((error, _request, response, _next) => response.status(503).send(error.code));
  const url = await served(t, createServer(application));
  return { url, complaints };
}

test("express: three, and then no more until the window is over", async (t) => {
  const { clock, store } = frozenStore();
  const { url, complaints } = await app(t, {
    store: expressRateLimitStore(store),
    standardHeaders: "draft-7",
  });
  const first = await fetch(url);
  assert.equal(first.headers.get("ratelimit"), "limit=3, remaining=2, reset=60");
  assert.deepEqual(await statuses(url, 4), [200, 200, 429, 429]);
  const refused = await fetch(url);
  assert.equal(refused.headers.get("retry-after"), "60");
  clock.ms += minute;
  assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  assert.deepEqual(complaints, []);
});

test("express: many at once get the limit and no more", async (t) => {
  const { url } = await app(t, { store: expressRateLimitStore(storeFrom(frozenTable().adapter)) });
  const all = await Promise.all(Array.from({ length: 30 }, () => fetch(url)));
  assert.equal(all.filter(({ status }) => status === 200).length, 3);
  assert.equal(all.filter(({ status }) => status === 429).length, 27);
});

test("express: requests that are to be skipped are given back", async (t) => {
  const { store } = frozenStore();
  const { url, complaints } = await app(t, {
    store: expressRateLimitStore(store),
    skipFailedRequests: true,
  });
  assert.deepEqual(await statuses(`${url}/fails`, 10), Array(10).fill(500));
  assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  assert.deepEqual(complaints, []);
});

test("express: a store that fails is the framework's to judge", async (t) => {
  const failing = () =>
    expressRateLimitStore(
      storeFrom({ get: () => Promise.reject(new Error("down")), compareAndSet() {} }),
    );
  const closed = await app(t, { store: failing() });
  const answer = await fetch(closed.url);
  assert.deepEqual([answer.status, await answer.text()], [503, "store"]);
  const open = await app(t, { store: failing(), passOnStoreError: true });
  assert.deepEqual(await statuses(open.url, 5), Array(5).fill(200));
  assert.equal(open.complaints.length, 5);
});

test("express: a bounded store without room refuses newcomers", async (t) => {
  const { clock, store } = frozenStore({ maxKeys: 1 });
  const { url } = await app(t, {
    store: expressRateLimitStore(store),
    keyGenerator: (request) => request.get("x-user"),
  });
  const as = (user, times) => statuses(url, times, { headers: { "x-user": user } });
  assert.deepEqual(await as("a", 1), [200]);
  assert.deepEqual(await as("b", 1), [429]);
  assert.deepEqual(await as("a", 3), [200, 200, 429]);
  clock.ms += minute;
  assert.deepEqual(await as("b", 1), [200]);
});

test("express: over an Arkos store hits are counted, and cannot be given back", async (t) => {
  const arkos = new MapStore();
  const store = expressRateLimitStore(storeFrom(arkos));
  const { url } = await app(t, { store });
  assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  await assert.rejects(store.decrement("key"), { code: "unsupported" });
});
