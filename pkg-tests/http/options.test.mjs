// Mistakes are found where they are made; refusals of one's own; what only one framework has.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { storeFrom } from "tidegate";
import { expressLimit, fastifyLimit, honoLimit, limitFetch } from "tidegate/http";
import { statuses } from "../compat/served.mjs";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { listening } from "./hosts.mjs";

const two = { limit: 2, window: "1m" };
const key = () => "everybody";

const mistakes = [
  [undefined, /options must be a plain object, but is undefined/],
  [{ limit: two, key, keys: 1 }, /unknown option "keys" in options; known are limit, .*trustProxy/],
  [{ key }, /option "limit" must be a plain object, but is undefined/],
  [{ limit: { limit: 0, window: "1m" }, key }, /option "limit" must be .*, but is 0/],
  [{ limit: two, key: "ip" }, /option "key" must be a function, but is "ip"/],
  [{ limit: two, key, cost: 2 }, /option "cost" must be a function, but is 2/],
  [{ limit: two, key, skip: true }, /option "skip" must be a function, but is true/],
  [{ limit: two, key, refuse: "no" }, /option "refuse" must be a function, but is "no"/],
  [{ limit: two, key, headers: "draft-8" }, /option "headers" must be "draft" or .*"draft-8"/],
  [{ limit: two, key, headers: true }, /option "headers" must be .*, but is true/],
  [{ limit: two, key, onStoreError: "throw" }, /option "onStoreError" must be .*"throw"/],
  [{ limit: two, trustProxy: true }, /option "trustProxy" must be .*or "cloudflare", but is true/],
  [{ limit: two, key, trustProxy: "nginx" }, /option "trustProxy" must be .*, but is "nginx"/],
  [{ limit: two, trustProxy: ["10.0.0.0/33"] }, /option "trustProxy\[0\]" must be .*10.0.0.0\/33/],
  [{ limit: two, key, store: new Map() }, /option "store" must be a store/],
  [{ limit: two, key, timeout: "soon" }, /option "timeout" must be .*, but is "soon"/],
];

const makers = {
  limitFetch,
  expressLimit,
  honoLimit,
  fastifyLimit: async (options) => {
    await fastify().register(fastifyLimit, options);
  },
};

for (const [name, make] of Object.entries(makers)) {
  test(`${name}: each mistake names its option and its value`, async () => {
    for (const [options, message] of mistakes) {
      // Fastify gives a plugin without options an empty bag of them.
      if (options === undefined && name === "fastifyLimit") continue;
      await assert.rejects(async () => make(options), { code: "bad_policy", message });
    }
  });
}

test("a Request tells no address: a key, or whom to believe, is asked for", async () => {
  for (const trustProxy of [undefined, 0, []]) {
    const message = /option "key" must be a function, .*"trustProxy"/;
    assert.throws(() => limitFetch({ limit: two, trustProxy }), { code: "bad_policy", message });
  }
  const limit = limitFetch({ limit: two, trustProxy: 1 });
  const message = /no client address \("trustProxy" is 1\); option "key"/;
  await assert.rejects(limit(new Request("http://localhost/")), { code: "bad_argument", message });
});

test("a best-effort store is refused, unless that is accepted", () => {
  const store = storeFrom({ ...frozenTable().adapter, atomicity: "best-effort" });
  assert.throws(() => limitFetch({ limit: two, key, store }), { code: "unsupported" });
  limitFetch({ limit: two, key, store, bestEffort: true });
});

test("limitFetch: the decision, the headers, and a refusal of one's own with them", async () => {
  const { store } = frozenStore();
  const refuse = ({ retryAfterMs }) =>
    new Response(`wait ${retryAfterMs}`, { status: 503, headers: { "Retry-After": "99" } });
  const limit = limitFetch({ limit: two, key, store, refuse });
  const ask = () => limit(new Request("http://localhost/"));
  const { response, decision, headers } = await ask();
  assert.equal(response, null);
  assert.deepEqual([decision.allowed, decision.remaining], [true, 1]);
  assert.deepEqual(headers, {
    "RateLimit-Policy": '"default";q=2;w=60',
    RateLimit: '"default";r=1;t=30',
  });
  await ask();
  const refused = await ask();
  assert.deepEqual([refused.decision.allowed, refused.decision.retryAfterMs], [false, 30_000]);
  assert.deepEqual([refused.response.status, await refused.response.text()], [503, "wait 30000"]);
  assert.equal(refused.response.headers.get("retry-after"), "99");
  assert.equal(refused.response.headers.get("ratelimit"), '"default";r=0;t=30');
});

test("limitFetch: a redirect is a refusal like any other, and what is no Response is an error", async () => {
  const { store } = frozenStore();
  const limited = (refuse) => limitFetch({ limit: two, key, store, refuse });
  const redirecting = limited(() => Response.redirect("http://localhost/slow"));
  const ask = (limit) => limit(new Request("http://localhost/"));
  for (let request = 0; request < 2; request += 1) await ask(redirecting);
  const { response } = await ask(redirecting);
  assert.deepEqual([response.status, response.headers.get("retry-after")], [302, "30"]);
  const message = /option "refuse" answers must be a Response, but is "no"/;
  await assert.rejects(ask(limited(() => "no")), { code: "bad_argument", message });
});

test("express: refuse writes the response, whose status and headers are set", async (t) => {
  const app = express();
  const thrown = new Error("mine");
  const refuse = ({ retryAfterMs }, request, response) => {
    if (request.path === "/throws") throw thrown;
    response.json({ wait: retryAfterMs });
  };
  app.use(expressLimit({ limit: two, store: frozenStore().store, refuse }));
  const ran = [];
  app.use((request, response) => {
    ran.push(request.path);
    response.end();
  });
  app.use((error, _request, response, _next) => response.status(500).send(error.message));
  const url = await listening(t, createServer(app));
  assert.deepEqual(await statuses(url, 2), [200, 200]);
  const refused = await fetch(url);
  assert.deepEqual([refused.status, await refused.json()], [429, { wait: 30_000 }]);
  assert.equal(refused.headers.get("retry-after"), "30");
  const failed = await fetch(`${url}/throws`);
  assert.deepEqual([failed.status, await failed.text()], [500, "mine"]);
  assert.equal(ran.length, 2);
});

test("express: somebody else's answer meanwhile is left alone", async (t) => {
  const { adapter } = frozenTable();
  const slow = Promise.withResolvers?.() ?? deferred();
  const store = storeFrom({ ...adapter, get: () => slow.promise.then(() => null) });
  const app = express();
  app.use((_request, response, next) => {
    next();
    response.status(504).end("too late");
  });
  const passed = [];
  const limit = expressLimit({ limit: two, store });
  app.use((request, response, _next) => limit(request, response, (error) => passed.push(error)));
  const url = await listening(t, createServer(app));
  assert.equal((await fetch(url)).status, 504);
  slow.resolve();
  await new Promise(setImmediate);
  assert.deepEqual(passed, [undefined]);
});

function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

async function application(t, options, routes) {
  const app = fastify();
  await app.register(fastifyLimit, options);
  routes(app);
  t.after(() => app.close());
  return app.listen({ port: 0, host: "127.0.0.1" });
}

test("fastify: a route has options of its own, or none", async (t) => {
  const one = { limit: { limit: 1, window: "1m" } };
  const hello = async () => "hello";
  const url = await application(t, { limit: two, store: frozenStore().store }, (app) => {
    app.get("/", hello);
    app.get("/also", hello);
    app.get("/login", { config: { tidegate: one } }, hello);
    app.get("/token", { config: { tidegate: one } }, hello);
    app.get("/health", { config: { tidegate: false } }, hello);
    app.register(async (nested) => nested.get("/nested", hello), { prefix: "/v1" });
  });
  assert.deepEqual(await statuses(`${url}/login`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/login`, 1, { method: "HEAD" }), [429]);
  assert.deepEqual(await statuses(`${url}/token`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/health`, 5), Array(5).fill(200));
  // One budget for the rest, wherever it is declared, and whether it is there or not.
  assert.deepEqual(await statuses(`${url}/v1/nested`, 1), [200]);
  assert.deepEqual(await statuses(`${url}/missing`, 1), [404]);
  assert.deepEqual(await statuses(`${url}/also`, 1), [429]);
  assert.deepEqual(await statuses(`${url}/missing`, 1), [429]);
});

test("fastify: routes that were declared before the plugin was loaded are limited, too", async (t) => {
  const app = fastify();
  app.register(fastifyLimit, { limit: two });
  app.get("/", async () => "hello");
  app.get("/one", { config: { tidegate: { limit: { limit: 1, window: "1m" } } } }, async () => "1");
  t.after(() => app.close());
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  assert.deepEqual(await statuses(url, 3), [200, 200, 429]);
  assert.deepEqual(await statuses(`${url}/one`, 2), [200, 429]);
});

test("fastify: a mistake in a route's options is found where the route is declared", async () => {
  const app = fastify();
  await app.register(fastifyLimit, { limit: two });
  const route = (tidegate) => () => app.get("/", { config: { tidegate } }, async () => "");
  const expected = { code: "bad_policy" };
  assert.throws(route({ limits: two }), { ...expected, message: /unknown option "limits"/ });
  assert.throws(route(5), { ...expected, message: /"config.tidegate" must be .*, but is 5/ });
});

test("fastify: what refuse answers is sent, or what it sends itself", async (t) => {
  const { store } = frozenStore();
  const refuse = ({ retryAfterMs }, request, reply) =>
    request.url === "/" ? { wait: retryAfterMs } : reply.code(503).send("later");
  const url = await application(t, { limit: two, store, refuse }, (app) => {
    app.get("/", async () => "hello");
    app.get("/other", async () => "hello");
  });
  assert.deepEqual(await statuses(url, 2), [200, 200]);
  const refused = await fetch(url);
  assert.deepEqual([refused.status, await refused.json()], [429, { wait: 30_000 }]);
  const other = await fetch(`${url}/other`);
  assert.deepEqual([other.status, await other.text()], [503, "later"]);
  assert.equal(other.headers.get("retry-after"), "30");
});

test("hono: a refusal of one's own; responses that cannot be changed get their headers", async (t) => {
  const app = new Hono();
  const refuse = ({ retryAfterMs }, c) => c.json({ wait: retryAfterMs }, 503);
  app.use(honoLimit({ limit: two, store: frozenStore().store, refuse }));
  app.get("/", () => Response.redirect("http://localhost/elsewhere"));
  const url = await listening(t, createAdaptorServer(app));
  const manual = () => fetch(url, { redirect: "manual" });
  const redirected = await manual();
  assert.deepEqual(
    [redirected.status, redirected.headers.get("ratelimit")],
    [302, '"default";r=1;t=30'],
  );
  await manual();
  const refused = await manual();
  assert.deepEqual([refused.status, await refused.json()], [503, { wait: 30_000 }]);
  assert.equal(refused.headers.get("retry-after"), "30");
});

test("hono: where nobody tells who is connected, that is said", async () => {
  const app = new Hono();
  const errors = [];
  app.use(honoLimit({ limit: two }));
  app.onError((error, c) => {
    errors.push(error.message);
    return c.text("failed", 500);
  });
  assert.equal((await app.request("/")).status, 500);
  assert.match(errors[0], /no client address .*option "key"/);
});
