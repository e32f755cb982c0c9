import assert from "node:assert/strict";
import { test } from "node:test";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { storeFrom } from "tidegate";
import { expressRateLimitStore } from "tidegate/compat";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { served, statuses } from "./served.mjs";

const minute = 60_000;

function app(t, options) {
  const application = new Hono();
  application.use(
    rateLimiter({ windowMs: minute, limit: 3, keyGenerator: () => "everybody", ...options }),
  );
  application.get("/", (c) => c.text("ok"));
  application.get("/fails", (c) => c.text("no", 500));
  return served(t, createAdaptorServer(application));
}

for (const [name, make] of [
  ["memory", frozenStore],
  [
    "a conditional write",
    () => {
      const { clock, adapter } = frozenTable();
      return { clock, store: storeFrom(adapter) };
    },
  ],
]) {
  test(`hono, ${name}: three, and then no more until the window is over`, async (t) => {
    const { clock, store } = make();
    const url = await app(t, { store: expressRateLimitStore(store) });
    const first = await fetch(url);
    assert.equal(first.headers.get("ratelimit-remaining"), "2");
    assert.deepEqual(await statuses(url, 3), [200, 200, 429]);
    const refused = await fetch(url);
    assert.equal(refused.headers.get("retry-after"), "60");
    clock.ms += minute;
    assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  });
}

test("hono: requests that are to be skipped are given back", async (t) => {
  const { store } = frozenStore();
  const url = await app(t, { store: expressRateLimitStore(store), skipFailedRequests: true });
  assert.deepEqual(await statuses(`${url}/fails`, 10), Array(10).fill(500));
  assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
});

test("hono: a slow request's refund after its window is over admits nobody more", async (t) => {
  const { clock, store } = frozenStore();
  const tested = expressRateLimitStore(store);
  tested.init({ windowMs: minute });
  await tested.increment("everybody");
  clock.ms += minute;
  await Promise.all(Array.from({ length: 5 }, () => tested.decrement("everybody")));
  const url = await app(t, { store: tested });
  assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
});
