// Redis over fetch as the Worker's store: a real server behind the protocol.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Limiter } from "tidegate";
import { EdgeStore } from "tidegate/cloudflare";
import { Server } from "../redis/servers.mjs";
import { TOKEN as REST_TOKEN, RestProxy, respond } from "../redis-rest/proxy.mjs";
import { serve, TOKEN, TOKENS } from "./served.mjs";

const limit = { limit: 20, window: "1h" };
let server;
let proxy;
let worker;

before(async () => {
  server = await Server.start();
  proxy = await RestProxy.start(server.port);
  const env = {
    TIDEGATE_TOKEN: TOKENS,
    UPSTASH_REDIS_REST_URL: proxy.url,
    UPSTASH_REDIS_REST_TOKEN: REST_TOKEN,
  };
  worker = await serve({ env });
});

after(async () => {
  await worker?.stop();
  await proxy?.stop();
  await server?.stop();
});

test("100 consumers of one key: exactly the limit, and one request each", async () => {
  await worker.ok("consume", { key: "first", limit });
  proxy.requests.length = 0;
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => worker.ok("consume", { key: "hot", limit })),
  );
  assert.equal(answers.filter(({ allowed }) => allowed).length, 20);
  assert.equal(proxy.requests.length, 100);
  const gen = new URL("../../js/dist/redis/gen/script.js", import.meta.url);
  const [, sha] = JSON.parse(proxy.requests[0].body);
  assert.equal(sha, (await import(gen)).step.sha, "the script that the package runs, too");
});

test("a store that others reach over the Worker: a tick is one request here, too", async () => {
  proxy.requests.length = 0;
  const store = new EdgeStore({ url: worker.url, token: TOKEN });
  const limiter = new Limiter({ limit, store, timeout: "5s" });
  const answers = await Promise.all(Array.from({ length: 100 }, () => limiter.consume("edge")));
  assert.equal(answers.filter(({ allowed }) => allowed).length, 20);
  assert.equal(proxy.requests.length, 1);
});

test("a batch is one request, of any kind of call", async () => {
  proxy.requests.length = 0;
  const { results } = await worker.ok("batch", {
    calls: [
      { path: "consume", key: "a", limit: [limit, { limit: 3, window: 1000, name: "ä" }], cost: 3 },
      { path: "peek", key: "a", limit },
      { path: "claim", id: "m", ttl: "1h", token: "t", payload: "p" },
      { path: "commit", id: "m", ttl: "1h", token: "t", result: { text: "é\\n\\" } },
      { path: "look", id: "m" },
      { path: "first", id: "f", ttl: "1h" },
      { path: "observe", identity: "i", threshold: 1, window: "1h" },
      { path: "block", key: "b", limit, duration: "1m" },
      { path: "consume", key: "b", limit },
    ],
  });
  const bodies = results.map(({ body }) => body);
  assert.deepEqual([bodies[0].remaining, bodies[0].limitName], [0, "ä"]);
  assert.equal(bodies[1].remaining, 17);
  assert.deepEqual(bodies.slice(2, 6), [
    { status: "fresh", token: "t" },
    { ok: true },
    { status: "duplicate", result: { text: "é\\n\\" } },
    { first: true },
  ]);
  assert.deepEqual([bodies[6].fired, bodies[8].reason], [true, "blocked"]);
  assert.equal(proxy.requests.length, 1);
});

test("a server that fails, refuses or talks nonsense is a store error, and is asked once", async () => {
  const faults = [
    (_request, _serve, response) => response.socket.destroy(),
    (_request, _serve, response) => respond(response, 401, { error: "WRONGPASS" }),
    (_request, _serve, response) => respond(response, 502, "<html>"),
    (_request, _serve, response) => respond(response, 200, { result: ["1;1"] }),
    (_request, _serve, response) => respond(response, 200, { result: 5 }),
    (_request, _serve, response) => respond(response, 302, ""),
  ];
  for (const fault of faults) {
    proxy.fault = fault;
    proxy.requests.length = 0;
    const { status, body } = await worker.call("consume", {
      key: "x",
      limit: [limit, { ...limit, name: "b" }],
    });
    assert.deepEqual([status, body.error.code], [503, "store"], `${fault}`);
    assert.equal(proxy.requests.length, 1);
  }
  proxy.fault = undefined;
  assert.equal(
    (await worker.ok("consume", { key: "x", limit })).remaining,
    19,
    "and nothing was charged",
  );
});

test("a server that forgot the script is given it again", async () => {
  await worker.ok("consume", { key: "s", limit });
  const { Redis } = await import("ioredis");
  const client = new Redis(server.port);
  await client.script("FLUSH");
  client.disconnect();
  assert.equal((await worker.ok("consume", { key: "s", limit })).remaining, 18);
});
