import assert from "node:assert/strict";
import { test } from "node:test";
import rateLimit from "@fastify/rate-limit";
import Fastify from "fastify";
import { storeFrom } from "tidegate";
import { fastifyRateLimitStore } from "tidegate/compat";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { statuses } from "./served.mjs";

const minute = 60_000;

function table() {
  const { clock, adapter } = frozenTable();
  return { clock, store: storeFrom(adapter) };
}

/** A listening app whose routes are added by `routes`. */
async function app(t, options, routes = (app) => app.get("/", async () => "ok")) {
  const application = Fastify();
  t.after(() => application.close());
  await application.register(rateLimit, { max: 3, timeWindow: minute, ...options });
  routes(application);
  return application.listen({ port: 0, host: "127.0.0.1" });
}

for (const [name, make] of [
  ["memory", frozenStore],
  ["a conditional write", table],
]) {
  test(`${name}: three, and then no more until the window is over`, async (t) => {
    const { clock, store } = make();
    const url = await app(t, { store: fastifyRateLimitStore(store) });
    const first = await fetch(url);
    assert.equal(first.headers.get("x-ratelimit-remaining"), "2");
    assert.equal(first.headers.get("x-ratelimit-reset"), "60");
    clock.ms += 20_000;
    assert.deepEqual(await statuses(url, 3), [200, 200, 429]);
    const refused = await fetch(url);
    assert.equal(refused.headers.get("retry-after"), "40");
    clock.ms += 40_000;
    assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  });

  test(`${name}: who goes on waits a whole window from the last hit`, async (t) => {
    const { clock, store } = make();
    const url = await app(t, { store: fastifyRateLimitStore(store), continueExceeding: true });
    assert.deepEqual(await statuses(url, 3), [200, 200, 200]);
    clock.ms += 50_000;
    assert.deepEqual(await statuses(url, 1), [429]);
    clock.ms += 50_000;
    const again = await fetch(url);
    assert.deepEqual([again.status, again.headers.get("retry-after")], [429, "60"]);
    clock.ms += minute;
    assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  });

  test(`${name}: a ban follows the hits beyond the limit`, async (t) => {
    const { store } = make();
    const url = await app(t, { store: fastifyRateLimitStore(store), max: 1, ban: 2 });
    assert.deepEqual(await statuses(url, 5), [200, 429, 429, 403, 403]);
  });
}

test("routes with options of their own count apart, and the rest together", async (t) => {
  const { store } = frozenStore();
  const own = { config: { rateLimit: { max: 1, timeWindow: "1 minute" } } };
  const url = await app(t, { store: fastifyRateLimitStore(store) }, (app) => {
    app.get("/a", own, async () => "a");
    app.get("/b", own, async () => "b");
    app.get("/c", async () => "c");
    app.get("/d", async () => "d");
  });
  assert.deepEqual(await statuses(`${url}/a`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/b`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/c`, 2), [200, 200]);
  assert.deepEqual(await statuses(`${url}/d`, 2), [200, 429]);
});

test("routes of a group count together", async (t) => {
  const { store } = frozenStore();
  const grouped = { config: { rateLimit: { groupId: "login" } } };
  const url = await app(t, { store: fastifyRateLimitStore(store) }, (app) => {
    app.get("/a", grouped, async () => "a");
    app.get("/b", grouped, async () => "b");
  });
  assert.deepEqual(await statuses(`${url}/a`, 2), [200, 200]);
  assert.deepEqual(await statuses(`${url}/b`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/a`, 1), [429]);
});

test("a look changes nothing", async (t) => {
  const { store } = frozenStore();
  const looked = { config: { rateLimit: false } };
  const url = await app(t, { store: fastifyRateLimitStore(store) }, (app) => {
    const limit = app.createRateLimit({ max: 2 });
    app.get("/look", looked, (request) => limit(request, { increment: false }));
    app.get("/hit", looked, (request) => limit(request));
  });
  const json = async (path) => (await fetch(`${url}${path}`)).json();
  assert.equal((await json("/look")).remaining, 2);
  assert.equal((await json("/look")).ttl, 0);
  assert.equal((await json("/hit")).remaining, 1);
  const looked2 = await json("/look");
  assert.deepEqual([looked2.remaining, looked2.ttl, looked2.isExceeded], [1, minute, false]);
  await json("/hit");
  assert.equal((await json("/hit")).isExceeded, true);
  assert.equal((await json("/look")).isExceeded, true);
});

test("many at once get the limit and no more", async (t) => {
  const url = await app(t, { store: fastifyRateLimitStore(table().store) });
  const all = await Promise.all(Array.from({ length: 30 }, () => fetch(url)));
  assert.equal(all.filter(({ status }) => status === 200).length, 3);
});

test("two nodes of a fleet count together, two plugins of one process do not", async (t) => {
  const { adapter } = frozenTable();
  const fleet = () => app(t, { store: fastifyRateLimitStore(storeFrom(adapter)) });
  assert.deepEqual(await statuses(await fleet(), 2), [200, 200]);
  assert.deepEqual(await statuses(await fleet(), 2), [200, 429]);
  const store = fastifyRateLimitStore(frozenStore().store);
  assert.deepEqual(await statuses(await app(t, { store }), 4), [200, 200, 200, 429]);
  assert.deepEqual(await statuses(await app(t, { store }), 4), [200, 200, 200, 429]);
});

test("a store that fails is the framework's to judge", async (t) => {
  const failing = () =>
    fastifyRateLimitStore(
      storeFrom({ get: () => Promise.reject(new Error("down")), compareAndSet() {} }),
    );
  assert.deepEqual(await statuses(await app(t, { store: failing() }), 1), [500]);
  const open = await app(t, { store: failing(), skipOnError: true });
  assert.deepEqual(await statuses(open, 5), Array(5).fill(200));
});

test("what the store cannot do is refused when the plugin is registered", async () => {
  const register = (options) => {
    const store = fastifyRateLimitStore(frozenStore().store);
    return Fastify().register(rateLimit, { store, ...options });
  };
  await assert.rejects(async () => register({ exponentialBackoff: true }), { code: "unsupported" });
  await assert.rejects(async () => register({ continueExceeding: true, ban: 2 }), {
    code: "unsupported",
  });
  assert.throws(() => fastifyRateLimitStore({}), { code: "bad_policy" });
});
