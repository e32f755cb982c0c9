// What happens to decisions when HTTP does to them what it can: each by its own policy, nothing asked for twice.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, afterEach, before, test } from "node:test";
import { Deduplicator, Limiter } from "tidegate";
import { RedisRestStore } from "tidegate/redis-rest";
import { freePort } from "../redis/servers.mjs";
import { gone, respond, TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

const rejections = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));

let served;
let proxy;
let prefixes = 0;

before(async () => {
  served = await serve();
  proxy = served.proxy;
});

afterEach(() => {
  proxy.fault = undefined;
});

after(async () => {
  await served.stop();
  assert.deepEqual(rejections, []);
});

const limit = { limit: 5, window: "1h" };

const made = (options) =>
  new RedisRestStore({ url: proxy.url, token: TOKEN, prefix: `p${prefixes++}`, ...options });

/** A limiter whose script the server knows. */
async function warm(options) {
  const limiter = new Limiter({ limit, store: made(), ...options });
  await limiter.consume("warm");
  proxy.requests.length = 0;
  return limiter;
}

/** Requests that are answered so, until the test ends. */
function answering(status, body) {
  proxy.fault = (_request, _serve, response) => respond(response, status, body);
}

const HTML = "<!doctype html><NOSCRIPT>Bad gateway</NOSCRIPT>";

for (const [name, status, body, message] of [
  ["a gateway's page", 502, HTML, /status 502/],
  ["a page with status 200", 200, HTML, /status 200/],
  ["an empty answer with status 500", 500, "", /status 500/],
  ["a result with status 500", 500, { result: ["4,1,0,0,0"] }, /status 500/],
  ["an error of the server", 400, { error: "ERR max daily request limit exceeded" }, /max daily/],
  ["an error beside a result", 200, { result: null, error: "ERR both" }, /ERR both/],
  ["JSON of no known form", 200, { results: [] }, /status 200/],
  ["null", 200, null, /status 200/],
  ["a result that is not the script's", 200, { result: "OK" }, /not one of ours/],
  ["replies that are not the script's", 200, { result: ["?"] }, /not one of ours|failed/],
  ["a token that is refused", 401, { error: "WRONGPASS" }, /token \(401\): WRONGPASS/],
  ["a token that is refused with a page", 403, HTML, /token \(403\)/],
]) {
  test(`${name} is a store error, and is asked for once`, async () => {
    const limiter = await warm();
    answering(status, body);
    await assert.rejects(limiter.consume("key"), (error) => {
      assert.equal(error.code, "store");
      assert.match(error.message, message);
      assert.ok(!error.message.includes(TOKEN), error.message);
      return true;
    });
    assert.equal(proxy.requests.length, 1);
  });
}

test("policies decide in place of a server that fails", async () => {
  const [deny, allow, local] = await Promise.all(
    ["deny", "allow", "local"].map((onStoreError) => warm({ onStoreError })),
  );
  answering(503, HTML);
  const denied = await deny.consume("key");
  assert.deepEqual([denied.allowed, denied.reason], [false, "store-error"]);
  assert.ok(denied.retryAfterMs > 0 && Number.isFinite(denied.retryAfterMs));
  const allowed = await allow.consume("key");
  assert.deepEqual([allowed.allowed, allowed.reason], [true, "store-error"]);
  const decided = await local.consume("key");
  assert.deepEqual([decided.allowed, decided.local, decided.remaining], [true, true, 4]);
});

test("a server that hangs: the deadline, an aborted request, then service resumes", async () => {
  const limiter = await warm({ timeout: 100 });
  let closed;
  proxy.fault = (_request, _serve, response) => {
    closed = gone(response);
  };
  await assert.rejects(limiter.consume("key"), { code: "timeout", message: /100 ms/ });
  await closed;
  proxy.fault = undefined;
  assert.equal((await limiter.consume("key")).remaining, 4);
});

test("a request is kept for as long as the most patient waits", async () => {
  const store = made();
  const patient = new Deduplicator({ ttl: "1h", store, timeout: "10s" });
  const limiter = new Limiter({ limit, store, timeout: 50 });
  await limiter.consume("warm");
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  proxy.fault = async (_request, serve, response) => {
    await held;
    respond(response, ...(await serve()));
  };
  const first = patient.first("id");
  await assert.rejects(limiter.consume("key"), { code: "timeout" });
  release();
  assert.equal(await first, true);
});

test("an answer that never ends", async () => {
  const limiter = await warm({ timeout: 100 });
  let closed;
  proxy.fault = (_request, _serve, response) => {
    closed = gone(response);
    response.writeHead(200, { "content-type": "application/json" });
    const more = () => response.write(" ".repeat(10_000));
    response.on("drain", more);
    while (more());
  };
  await assert.rejects(limiter.consume("key"), { code: "timeout" });
  await closed;
});

test("an answer that is lost after the script ran: an error, and one charge", async () => {
  for (const lose of [
    (response) => response.destroy(),
    (response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"result":', () => response.destroy());
    },
    (response) => respond(response, 200, '{"result":[[0,0,'),
  ]) {
    const limiter = await warm();
    proxy.fault = async (_request, serve, response) => {
      const [status] = await serve();
      assert.equal(status, 200);
      lose(response);
    };
    await assert.rejects(limiter.consume("key"), { code: "store" });
    assert.equal(proxy.requests.length, 1);
    proxy.fault = undefined;
    assert.equal((await limiter.peek("key")).remaining, 4);
  }
});

test("a claim whose answer was lost is not handled twice", async () => {
  const dedup = new Deduplicator({ ttl: "1h", store: made() });
  await dedup.first("warm");
  proxy.fault = async (_request, serve, response) => {
    await serve();
    response.destroy();
  };
  await assert.rejects(dedup.first("id"), { code: "store" });
  proxy.fault = undefined;
  assert.equal(await dedup.first("id"), false);
});

test("a redirect is not followed", async (t) => {
  const followed = [];
  const elsewhere = createServer((request, response) => {
    followed.push(request.headers.authorization);
    response.end("{}");
  }).listen(0, "127.0.0.1");
  t.after(() => elsewhere.close());
  await once(elsewhere, "listening");
  const limiter = await warm();
  for (const status of [301, 307]) {
    proxy.fault = (_request, _serve, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${elsewhere.address().port}/` });
      response.end();
    };
    await assert.rejects(limiter.consume("key"), { code: "store", message: /redirects.*"url"/ });
  }
  assert.deepEqual(followed, []);
});

test("a command of a pipeline that fails fails its own decisions, a pipeline that fails all", async () => {
  const three = async (fault) => {
    proxy.fault = undefined;
    const limiter = await warm({ store: made({ maxBatch: 2 }) });
    proxy.fault = fault;
    return Promise.allSettled(["a", "b", "c"].map((key) => limiter.consume(key)));
  };
  const some = await three(async (_request, serve, response) => {
    const [status, [first]] = await serve();
    respond(response, status, [first, { error: "ERR the second" }]);
  });
  assert.deepEqual(
    some.map(({ value, reason }) => value?.remaining ?? reason.message),
    [4, 4, "the server refused: ERR the second"],
  );
  for (const [status, body, message] of [
    [400, { error: "ERR the whole" }, /ERR the whole/],
    [200, [{ result: [] }], /status 200/],
    [502, HTML, /status 502/],
  ]) {
    const all = await three((_request, _serve, response) => respond(response, status, body));
    for (const { reason } of all) assert.match(reason.message, message);
  }
});

test("a server that is not there, and a fetch that answers nonsense", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const away = new Limiter({ limit, store: made({ url }) });
  await assert.rejects(away.consume("key"), { code: "store", message: /ECONNREFUSED/ });
  for (const send of [() => undefined, async () => ({}), () => Promise.reject("no")]) {
    const limiter = new Limiter({ limit, store: made({ fetch: send }) });
    await assert.rejects(limiter.consume("key"), { code: "store" });
  }
});

test("a database that stops behind its proxy is a timeout, and is asked again when it is back", async () => {
  const limiter = await warm({ onStoreError: "deny", timeout: 100 });
  served.server.signal("SIGSTOP");
  const { allowed, reason } = await limiter.consume("key");
  served.server.signal("SIGCONT");
  assert.deepEqual([allowed, reason], [false, "timeout"]);
  for (;;) if ((await limiter.consume("key")).reason === "ok") break;
});
