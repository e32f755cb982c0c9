// Gate mode, in front of a real origin: what is admitted arrives as it was sent, what is not is told when to come
// again, and whatever way of writing a path the origin understands, the policies see the same.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Server } from "socket.io";
import { io as connect } from "socket.io-client";
import WebSocket, { WebSocketServer } from "ws";
import { root } from "../../js/tools/shell.mjs";
import { serve, TOKENS } from "./served.mjs";

const limit = { limit: 2, window: "1h" };
const policies = {
  version: 1,
  routes: [
    { path: "/login", methods: ["POST"], limit: { ...limit, name: 'log"in' } },
    {
      path: "/deep/*",
      limit: [
        { ...limit, name: "few" },
        { limit: 5, window: 1500, burst: 3, name: "many" },
      ],
    },
    { path: "/keyed", limit: { limit: 4, window: "1h" }, header: { name: "X-Api-Key", limit } },
    { path: "/read", methods: ["GET"], limit },
    { path: "/chat", only: "handshakes", limit },
    {
      path: "/socket.io/*",
      only: "handshakes",
      limit: { limit: 3, window: "1h", algorithm: "fixed-window" },
    },
  ],
};

/** An origin that says what it was sent. */
async function startOrigin() {
  const origin = { seen: [] };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    origin.seen.push(url);
    if (url === "/away")
      return response.writeHead(302, { location: "https://elsewhere.example/" }).end();
    if (url === "/cookies") response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.writeHead(url === "/teapot" ? 418 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
  const sockets = new WebSocketServer({ server, path: "/chat" });
  sockets.on("connection", (socket) => socket.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin.server = server;
  origin.url = `http://127.0.0.1:${server.address().port}`;
  origin.stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return origin;
}

let origin;
let worker;
let addresses = 0;
const fresh = () => `203.0.113.${++addresses}`;

before(async () => {
  origin = await startOrigin();
  worker = await serve({
    env: { TIDEGATE_TOKEN: TOKENS, ORIGIN: origin.url, POLICIES: JSON.stringify(policies) },
  });
});

after(async () => {
  await worker.stop();
  origin.stop();
});

const ask = (path, address, init = {}) =>
  fetch(worker.url + path, {
    redirect: "manual",
    ...init,
    headers: { "cf-connecting-ip": address, ...init.headers },
  });

/** The status that a WebSocket's opening is answered with. */
async function upgraded(path, address) {
  const headers = { "cf-connecting-ip": address };
  const socket = new WebSocket(worker.url.replace("http", "ws") + path, { headers });
  socket.on("error", () => {});
  const refused = once(socket, "unexpected-response").then(([, { statusCode }]) => statusCode);
  const status = await Promise.race([once(socket, "open").then(() => 101), refused]);
  socket.terminate();
  return status;
}

const statuses = async (count, path, address, init) => {
  const responses = [];
  for (let index = 0; index < count; index += 1)
    responses.push((await ask(path, address, init)).status);
  return responses;
};

describe("what is passed on", () => {
  test("method, path, query, headers and body arrive, and the answer comes back", async () => {
    const response = await ask("/a/b%20c?x=%2F&y", fresh(), {
      method: "PUT",
      body: "text",
      headers: { "x-mine": "1", authorization: "Bearer theirs" },
    });
    const { method, url, headers, body } = await response.json();
    assert.deepEqual(
      { method, url, body },
      { method: "PUT", url: "/a/b%20c?x=%2F&y", body: "text" },
    );
    assert.equal(headers["x-mine"], "1");
    assert.equal(headers.authorization, "Bearer theirs");
    assert.equal(headers.host, new URL(origin.url).host);
    assert.equal((await ask("/teapot", fresh())).status, 418);
    assert.deepEqual((await ask("/cookies", fresh())).headers.getSetCookie(), ["a=1", "b=2"]);
  });

  test("a redirect is the client's to follow", async () => {
    const response = await ask("/away", fresh());
    assert.deepEqual(
      [response.status, response.headers.get("location")],
      [302, "https://elsewhere.example/"],
    );
  });

  test("our own paths are never passed on, however they are written", async () => {
    const { length } = origin.seen;
    for (const path of [
      "/v1/x",
      "/v1",
      "//v1/consume",
      "/%76%31/consume",
      "/x/..%2fv1/consume",
      "/metrics",
      "/healthz/",
      "/openapi.json/",
      "/openapi.json/x",
      "/V1/consume",
      "/Metrics",
      "/Healthz",
    ]) {
      const { status } = await ask(path, fresh());
      assert.ok(status === 404 || /^\/(v1\/|x|%76|\/v1|metrics)/.test(path), `${path} ${status}`);
      assert.ok(status >= 400, path);
    }
    assert.equal((await ask("/healthz", fresh())).status, 200);
    assert.equal(origin.seen.length, length);
  });

  test("an escape that is broken is 400", async () => {
    for (const path of ["/%zz", "/a%", "/a%00b"])
      assert.equal((await ask(path, fresh())).status, 400);
  });
});

describe("what is limited", () => {
  test("429 with the RateLimit fields, and when to come again", async () => {
    const address = fresh();
    const post = { method: "POST" };
    assert.deepEqual(await statuses(2, "/login", address, post), [200, 200]);
    const { length } = origin.seen;
    const response = await ask("/login", address, post);
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("ratelimit-policy"), '"log\\"in";q=2;w=3600');
    assert.match(response.headers.get("ratelimit"), /^"log\\"in";r=0;t=(3600|359\d)$/);
    assert.match(response.headers.get("retry-after"), /^(1800|179\d)$/);
    assert.equal(response.headers.get("cache-control"), "no-store");
    const { error } = await response.json();
    assert.equal(error.code, "rate_limited");
    assert.ok(error.retryAfterMs > 1_790_000 && error.retryAfterMs <= 1_800_000);
    assert.equal(origin.seen.length, length);
    assert.deepEqual(await statuses(3, "/login", address), [200, 200, 200], "other methods");
    assert.equal((await ask("/login", fresh(), post)).status, 200, "other addresses");
  });

  test("several limits are all told, and the one that denied", async () => {
    const address = fresh();
    await statuses(2, "/deep/a", address);
    const { headers } = await ask("/deep/b", address);
    assert.equal(headers.get("ratelimit-policy"), '"few";q=2;w=3600, "many";q=5;w=2');
    assert.match(headers.get("ratelimit"), /^"few";r=0;t=/);
  });

  test("a limit on GET is one on HEAD, too", async () => {
    const address = fresh();
    assert.deepEqual(await statuses(2, "/read", address, { method: "HEAD" }), [200, 200]);
    assert.deepEqual(await statuses(1, "/read", address), [429]);
    assert.deepEqual(await statuses(1, "/read", address, { method: "HEAD" }), [429]);
  });

  test("what names no session of Engine.IO is a handshake, whatever it looks like", async () => {
    const engine = "/socket.io/?EIO=4&transport=polling";
    const handshakes = [
      engine,
      "/socket.io/?transport=polling",
      `${engine}&sid=`,
      `${engine}&sid=x&sid=`,
      `${engine}&sid=&sid=x`,
      `${engine}${"&".repeat(1_000)}sid=x`,
    ];
    for (const path of handshakes) {
      const answers = await statuses(4, path, fresh());
      assert.deepEqual(answers, [200, 200, 200, 429], path.slice(0, 60));
    }
    for (const path of [`${engine}&sid=x`, "/socket.io/?transport=polling&sid=x"]) {
      assert.deepEqual(await statuses(4, path, fresh()), [200, 200, 200, 200], path);
    }
    const upgrades = [
      "/chat",
      "/chat?sid=1",
      "/chat?transport=websocket&sid=",
      "/chat?EIO=4&transport=websocket&sid=",
    ];
    for (const path of upgrades) {
      const address = fresh();
      const answers = [];
      for (let index = 0; index < 3; index += 1) answers.push(await upgraded(path, address));
      assert.deepEqual(answers, [101, 101, 429], path);
    }
    const address = fresh();
    const session = "/chat?EIO=4&transport=websocket&sid=x";
    for (let index = 0; index < 3; index += 1)
      assert.equal(await upgraded(session, address), 101, session);
  });

  test("every way of writing a path is the same budget, and the origin is sent the one that was matched", async () => {
    const ways = [
      "/deep/x",
      "//deep//x",
      "/a/../deep/x",
      "/%64eep/x",
      "/deep%2fx",
      "/deep/%2e/x",
      "/DEEP/x",
      "/deep/x/",
      "/deep%5Cx",
      "/deep",
    ];
    for (const way of ways) {
      const address = fresh();
      assert.deepEqual(await statuses(3, way, address), [200, 200, 429], way);
      assert.equal((await ask("/deep/x", address)).status, 429, way);
    }
    assert.ok(origin.seen.slice(-ways.length * 2).every((url) => /^\/deep(\/x\/?)?$/i.test(url)));
    assert.equal((await ask("/deepx", fresh())).status, 200);
  });

  test("only the platform's header names an address, and IPv6 counts by its network", async () => {
    const spoofed = (number) => ({
      headers: {
        "x-forwarded-for": `198.51.100.${number}`,
        "x-real-ip": `198.51.100.${number}`,
        forwarded: `for=198.51.100.${number}`,
      },
    });
    const address = fresh();
    const answers = [];
    for (const number of [1, 2, 3])
      answers.push((await ask("/deep/x", address, spoofed(number))).status);
    assert.deepEqual(answers, [200, 200, 429]);
    const network = [];
    for (const host of [1, 2, 3])
      network.push((await ask("/deep/x", `2001:db8:0:1::${host}`)).status);
    assert.deepEqual(network, [200, 200, 429]);
    assert.equal((await ask("/deep/x", "2001:db8:0:2::1")).status, 200);
  });

  test("a key from a header is charged together with its address", async () => {
    const keyed = (key, address) =>
      ask("/keyed", address, { headers: { "x-api-key": key } }).then(({ status }) => status);
    // One key from many addresses.
    const shared = [fresh(), fresh(), fresh()];
    assert.deepEqual(
      [await keyed("k1", shared[0]), await keyed("k1", shared[1]), await keyed("k1", shared[2])],
      [200, 200, 429],
    );
    // What the key denied was not charged to the address: all four are left.
    assert.deepEqual(await statuses(5, "/keyed", shared[2]), [200, 200, 200, 200, 429]);
    // One address that makes keys up.
    const address = fresh();
    const made = [];
    for (let number = 0; number < 5; number += 1)
      made.push(await keyed(`made-up-${number}`, address));
    assert.deepEqual(made, [200, 200, 200, 200, 429]);
  });
});

test("a Socket.IO server behind the gate: WebSockets pass, handshakes are limited, sessions are not", async () => {
  const behind = createServer();
  const server = new Server(behind);
  server.on("connection", (socket) => socket.on("echo", (value, ack) => ack(value)));
  behind.listen(0, "127.0.0.1");
  await once(behind, "listening");
  const gate = await serve({
    env: {
      ORIGIN: `http://127.0.0.1:${behind.address().port}`,
      POLICIES: JSON.stringify(policies),
    },
  });
  const open = async (transports, address) => {
    const options = {
      transports,
      reconnection: false,
      forceNew: true,
      extraHeaders: { "cf-connecting-ip": address },
    };
    const socket = connect(gate.url, options);
    await Promise.race([
      once(socket, "connect"),
      once(socket, "connect_error").then(([error]) => Promise.reject(error)),
    ]);
    return socket;
  };
  try {
    const address = fresh();
    const sockets = [
      await open(["websocket"], address),
      await open(["polling"], address),
      await open(["polling", "websocket"], address),
    ];
    // Far more requests than the limit, within the sessions.
    for (const socket of sockets) {
      for (let number = 0; number < 10; number += 1)
        assert.equal(await socket.emitWithAck("echo", number), number);
    }
    const binary = Buffer.from([0, 1, 255]);
    assert.deepEqual(Buffer.from(await sockets[0].emitWithAck("echo", binary)), binary);
    await assert.rejects(open(["websocket"], address));
    await assert.rejects(open(["polling"], address));
    const other = await open(["websocket"], fresh());
    for (const socket of [...sockets, other]) socket.close();
  } finally {
    await gate.stop();
    await server.close();
  }
});

describe("settings", () => {
  const answerOf = async (env, path = "/x") => {
    const gate = await serve({ env });
    try {
      const url = gate.url + path;
      const response = await fetch(url, { redirect: "manual" });
      return { status: response.status, text: await response.text(), url };
    } finally {
      await gate.stop();
    }
  };
  const POLICIES = JSON.stringify(policies);

  test("without an origin there is nothing", async () => {
    assert.equal((await answerOf({ TIDEGATE_TOKEN: TOKENS })).status, 404);
  });

  test("the gate works without a token", async () => {
    assert.equal((await answerOf({ ORIGIN: origin.url, POLICIES })).status, 200);
  });

  test("policies that are bound as JSON are as good as their text", async () => {
    assert.equal((await answerOf({ ORIGIN: origin.url, POLICIES: policies })).status, 200);
  });

  test("a token travels to no host that only looks like this machine", async () => {
    for (const host of ["127.evil.example", "127.0.0.1.evil.example", "10.0.0.1"]) {
      const env = { UPSTASH_REDIS_REST_URL: `http://${host}`, UPSTASH_REDIS_REST_TOKEN: "t" };
      const { status, text } = await answerOf({ ...env, ORIGIN: origin.url, POLICIES }, "/read");
      assert.deepEqual([status, JSON.parse(text).error.code], [503, "not_configured"], host);
    }
  });

  test("no policies, and policies that make no sense, are 503 and say why", async () => {
    const cases = [
      [undefined, "POLICIES"],
      ["{", "JSON"],
      ['{"version":1,"routes":[{"path":"x"}]}', "routes[0].path"],
      [JSON.stringify({ version: 1, routes: [{ path: "/x", limit, cost: 3 }] }), "routes[0].cost"],
    ];
    for (const [document, says] of cases) {
      const env = { ORIGIN: origin.url, ...(document && { POLICIES: document }) };
      const { status, text } = await answerOf(env);
      assert.equal(status, 503);
      assert.ok(text.includes(says), text);
    }
  });

  test("an origin that makes no sense is 503, and one that is not there 502", async () => {
    for (const ORIGIN of [
      "nowhere",
      "ftp://x.example",
      "https://x.example/path",
      "https://x.example?x",
      "https://x.example?",
      "https://x.example#x",
      "https://user:secret@x.example",
    ]) {
      assert.equal((await answerOf({ ORIGIN, POLICIES })).status, 503, ORIGIN);
    }
    const { status, text } = await answerOf({ ORIGIN: "http://127.0.0.1:1", POLICIES });
    assert.deepEqual([status, JSON.parse(text).error.code], [502, "origin"]);
  });

  test("an origin that is the Worker itself is refused", async () => {
    const loop = await serve({ env: { ORIGIN: "http://gate.localhost", POLICIES } });
    try {
      // The port that it will get is not known before; the host that it is asked for is.
      const { hostname, port } = new URL(loop.url);
      const { request } = await import("node:http");
      const asked = request({
        hostname,
        port,
        path: "/x",
        headers: { host: "gate.localhost" },
      }).end();
      const [response] = await once(asked, "response");
      response.resume();
      assert.equal(response.statusCode, 503);
    } finally {
      await loop.stop();
    }
  });

  test("a store that fails: each route's onError", async () => {
    const routes = [
      { path: "/a", limit, onError: "allow" },
      { path: "/d", limit },
    ];
    const env = {
      ORIGIN: origin.url,
      POLICIES: JSON.stringify({ version: 1, routes }),
      UPSTASH_REDIS_REST_URL: "http://127.0.0.1:1",
      UPSTASH_REDIS_REST_TOKEN: "t",
    };
    assert.equal((await answerOf(env, "/a")).status, 200);
    const denied = await answerOf(env, "/d");
    assert.deepEqual([denied.status, JSON.parse(denied.text).error.code], [503, "store"]);
    assert.equal((await answerOf(env, "/free")).status, 200);
  });
});

describe("shards that do not answer", () => {
  const source = `
    import Worker, { TidegateShard as Shard } from ${JSON.stringify(join(root, "target/worker/index.js"))};

    export default Worker;
    export class TidegateShard {
      constructor(state, env) {
        const shard = new Shard(state, env);
        this.alarm = () => shard.alarm();
        this.fetch = async (request) => {
          const body = await request.text();
          if (body.includes("hangs")) await new Promise((resolve) => setTimeout(resolve, 60_000));
          if (body.includes("h:")) throw new Error("the object is overloaded");
          return shard.fetch(new Request(request.url, { method: "POST", body }));
        };
      }
    }
  `;
  const header = { name: "x-key", limit };
  const routes = [
    { path: "/hangs/d", limit },
    { path: "/hangs/a", limit, onError: "allow" },
    { path: "/d", limit, header },
    { path: "/a", limit, header, onError: "allow" },
  ];
  let gate;
  const statusOf = async (path, headers) =>
    (await fetch(gate.url + path, { headers, signal: AbortSignal.timeout(15_000) })).status;

  before(async () => {
    const POLICIES = JSON.stringify({ version: 1, routes });
    gate = await serve({ source, env: { TIDEGATE_TOKEN: TOKENS, ORIGIN: origin.url, POLICIES } });
  });

  after(() => gate.stop());

  test("are waited for, for five seconds", async () => {
    const asked = [statusOf("/hangs/d"), statusOf("/hangs/a"), gate.call("has", { id: "hangs" })];
    const [denied, allowed, { status, body }] = await Promise.all(asked);
    assert.deepEqual([denied, allowed, status, body.error.code], [503, 200, 503, "store"]);
  });

  test("what a header's shard prevents is not charged to the address", async () => {
    const key = { "x-key": "k" };
    for (let number = 0; number < 3; number += 1) assert.equal(await statusOf("/d", key), 503);
    assert.deepEqual(
      [await statusOf("/d"), await statusOf("/d"), await statusOf("/d")],
      [200, 200, 429],
    );
    assert.deepEqual([await statusOf("/a", key), await statusOf("/a", key)], [200, 200]);
    assert.equal(await statusOf("/a", key), 429, "what is passed on is");
  });
});

test("policies in KV: live within a minute of a change, and the last good ones stay", async () => {
  const document = (version, path) =>
    JSON.stringify({ version, routes: [{ path, limit: { limit: 1, window: "1h" } }] });
  const kv = { status: 200, text: document(1, "/one"), reads: 0 };
  const namespace = createServer((_request, response) => {
    kv.reads += 1;
    response.writeHead(kv.status).end(kv.text);
  });
  namespace.listen(0, "127.0.0.1");
  await once(namespace, "listening");
  const gate = await serve({
    clock: true,
    env: { TIDEGATE_TOKEN: TOKENS, ORIGIN: origin.url, POLICIES: document(1, "/set") },
    bindings: ['(name = "POLICIES_KV", kvNamespace = "kv")'],
    services: [
      `(name = "kv", external = (address = "127.0.0.1:${namespace.address().port}", http = ()))`,
    ],
  });
  let now = 1_790_000_000_000;
  const wait = (ms) => {
    now += ms;
    return gate.setClock(now);
  };
  const limited = async (path) => {
    const headers = { "cf-connecting-ip": fresh() };
    const get = async () => (await fetch(gate.url + path, { headers })).status;
    return [await get(), await get()].join() === "200,429";
  };
  try {
    await wait(0);
    Object.assign(kv, { text: "", status: 404 });
    assert.equal(await limited("/set"), true, "the setting, as long as there is nothing in KV");
    await wait(60_000);
    assert.equal(await limited("/set"), true);
    Object.assign(kv, { text: document(1, "/one"), status: 200, reads: 0 });
    await wait(60_000);
    assert.deepEqual([await limited("/one"), await limited("/two")], [true, false]);
    assert.equal(kv.reads, 1, "one look in half a minute");
    kv.text = document(2, "/two");
    await wait(60_000 - 30_000);
    assert.deepEqual([await limited("/one"), await limited("/two")], [false, true]);
    const wrong = [
      ["{", 200],
      [document(1, "/one"), 200],
      ["", 404],
      ["", 500],
    ];
    for (const [text, status] of wrong) {
      Object.assign(kv, { text, status });
      await wait(60_000);
      assert.equal(await limited("/two"), true, `${status} ${text}`);
    }
    Object.assign(kv, { text: document(2, "/three"), status: 200 });
    await wait(60_000);
    assert.equal(await limited("/three"), true, "the same version, changed");
  } finally {
    await gate.stop();
    namespace.close();
  }
});
