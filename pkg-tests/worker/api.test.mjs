// The HTTP API: what each call answers, who may call, and what is refused.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { BOUND_TOKEN, serve, TOKEN } from "./served.mjs";

let worker;

before(async () => {
  worker = await serve();
});

after(() => worker.stop());

const hour = { limit: 3, window: "1h" };
let used = 0;
const fresh = () => `key ${++used}`;

describe("limits", () => {
  test("consume charges, peek looks, refund gives back, reset forgets", async () => {
    const key = fresh();
    const call = (path, more) => worker.ok(path, { key, limit: hour, ...more });
    assert.deepEqual(await call("consume", { cost: 2 }), {
      allowed: true,
      reason: "ok",
      limit: 3,
      remaining: 1,
      retryAfterMs: 0,
      resetAfterMs: 2_400_000,
      limitName: "default",
      local: false,
      dryRun: false,
    });
    const denied = await call("consume", { cost: 2 });
    assert.equal(denied.allowed, false);
    assert.equal(denied.reason, "limited");
    assert.ok(denied.retryAfterMs > 1_190_000 && denied.retryAfterMs <= 1_200_000);
    assert.equal((await call("peek", { cost: 1 })).remaining, 1);
    assert.deepEqual(await call("refund", { cost: 1 }), { ok: true });
    assert.equal((await call("peek")).remaining, 2);
    assert.deepEqual(await call("reset"), { ok: true });
    assert.equal((await call("peek")).remaining, 3);
  });

  test("a cost above capacity has a wait without end, which is null", async () => {
    const { reason, retryAfterMs } = await worker.ok("consume", {
      key: fresh(),
      limit: hour,
      cost: 4,
    });
    assert.deepEqual({ reason, retryAfterMs }, { reason: "never", retryAfterMs: null });
  });

  test("several limits are one decision, by the names that they were given", async () => {
    const limit = [
      { name: "a name longer than a record would hold, in 日本語", limit: 1, window: "1d" },
      { name: "many", algorithm: "fixed-window", limit: 100, window: 1000 },
    ];
    const key = fresh();
    assert.equal((await worker.ok("consume", { key, limit })).limitName, limit[0].name);
    const { allowed, limitName } = await worker.ok("consume", { key, limit });
    assert.deepEqual({ allowed, limitName }, { allowed: false, limitName: limit[0].name });
  });

  test("block and unblock", async () => {
    const key = fresh();
    await worker.ok("block", { key, limit: hour, duration: "10m" });
    const { reason, retryAfterMs } = await worker.ok("consume", { key, limit: hour });
    assert.equal(reason, "blocked");
    assert.ok(retryAfterMs > 590_000 && retryAfterMs <= 600_000);
    await worker.ok("unblock", { key, limit: hour });
    assert.equal((await worker.ok("consume", { key, limit: hour })).reason, "ok");
  });

  test("keys of different prefixes, and those that look like each other, never meet", async () => {
    const limit = { limit: 1, window: "1h" };
    const asked = [
      { key: "b:c", prefix: "a" },
      { key: "c", prefix: "a:b" },
      { key: "\ud800" },
      { key: "\ud801" },
      { key: "�" },
      { key: "__proto__" },
      { key: "x".repeat(10_000) },
      { key: "x".repeat(10_001) },
      { key: "\0\n\t%{}*" },
    ];
    for (const body of asked)
      assert.equal((await worker.ok("consume", { ...body, limit })).allowed, true);
    for (const body of asked)
      assert.equal((await worker.ok("consume", { ...body, limit })).allowed, false);
  });
});

describe("messages", () => {
  test("first and has", async () => {
    const id = fresh();
    assert.deepEqual(await worker.ok("has", { id }), { has: false });
    assert.deepEqual(await worker.ok("first", { id, ttl: "1h" }), { first: true });
    assert.deepEqual(await worker.ok("first", { id, ttl: "1h" }), { first: false });
    assert.deepEqual(await worker.ok("has", { id }), { has: true });
    assert.deepEqual(await worker.ok("look", { id }), { status: "duplicate" });
    assert.deepEqual(await worker.ok("forget", { id }), { ok: true });
    assert.deepEqual(await worker.ok("look", { id }), { status: "absent" });
  });

  test("claim, renew, commit, and the result for whoever comes later", async () => {
    const id = fresh();
    const claim = (more) => worker.ok("claim", { id, ttl: "1h", ...more });
    const { status, token } = await claim({ payload: "order 1" });
    assert.equal(status, "fresh");
    const later = await claim();
    assert.equal(later.status, "in-progress");
    assert.ok(later.retryAfterMs > 29_000 && later.retryAfterMs <= 30_000);
    assert.deepEqual(await claim({ payload: "order 2" }), { status: "mismatch" });
    assert.deepEqual(await worker.ok("renew", { id, token, lease: "1m" }), { ok: true });
    assert.deepEqual(await worker.ok("commit", { id, token: "another", ttl: "1h" }), { ok: false });
    const result = { text: "fünf\n😀\ud83d", list: [1.5, null, { deep: [[[]]] }], empty: "" };
    assert.deepEqual(await worker.ok("commit", { id, token, ttl: "1h", result }), { ok: true });
    assert.deepEqual(await claim(), { status: "duplicate", result });
    assert.deepEqual(await worker.ok("look", { id }), { status: "duplicate", result });
    assert.deepEqual(await worker.ok("has", { id }), { has: true });
  });

  test("a result of null is one, and a claim that is released has not been", async () => {
    const id = fresh();
    const first = await worker.ok("claim", { id, ttl: 1000, lease: "5s" });
    assert.deepEqual(await worker.ok("release", { id, token: first.token }), { ok: true });
    const { token } = await worker.ok("claim", { id, ttl: "1h" });
    await worker.ok("commit", { id, token, ttl: "1h", result: null });
    assert.deepEqual(await worker.ok("look", { id }), { status: "duplicate", result: null });
  });

  test("a claim that names its attempt is the caller's again after a lost answer", async () => {
    const body = { id: fresh(), ttl: "1h", token: "attempt-1" };
    assert.deepEqual(await worker.ok("claim", body), { status: "fresh", token: "attempt-1" });
    assert.deepEqual(await worker.ok("claim", body), { status: "fresh", token: "attempt-1" });
  });
});

test("observations fire once, and a retry with the same nonce is told again", async () => {
  const identity = fresh();
  const observe = (more) =>
    worker.ok("observe", { identity, threshold: 3, window: "1h", cooldown: "2h", ...more });
  assert.deepEqual(
    [(await observe()).fired, (await observe({ weight: 2, nonce: "n" })).fired],
    [false, true],
  );
  const again = await observe({ weight: 2, nonce: "n" });
  assert.deepEqual([again.fired, again.replay, again.count], [true, true, 3]);
  const { fired, replay, count, windowEndsInMs } = await observe({ trigger: "tumbling" });
  assert.deepEqual({ fired, replay, count }, { fired: false, replay: false, count: 4 });
  assert.ok(windowEndsInMs > 0 && windowEndsInMs <= 3_600_000);
  assert.equal((await observe({ trigger: "sliding", cooldown: 0, window: 50 })).count, 1);
});

describe("batches", () => {
  test("each call has its own status, in order, over all shards", async () => {
    const keys = Array.from({ length: 100 }, fresh);
    const calls = keys.flatMap((key) => [
      { path: "consume", key, limit: hour, cost: 3 },
      { path: "consume", key, limit: hour },
    ]);
    calls.splice(50, 0, { path: "consume", key: "", limit: hour }, 5, { path: "batch", calls: [] });
    const { results } = await worker.ok("batch", { calls });
    assert.equal(results.length, calls.length);
    const wrong = results.splice(50, 3);
    assert.deepEqual(
      wrong.map(({ status }) => status),
      [400, 400, 400],
    );
    assert.equal(wrong[0].body.error.field, "calls[50].key");
    assert.deepEqual(
      results.map(({ status, body }) => [status, body.allowed]),
      keys.flatMap(() => [
        [200, true],
        [200, false],
      ]),
    );
  });

  test("at most 256 calls, and at least one", async () => {
    const calls = (count) => Array.from({ length: count }, () => ({ path: "has", id: "x" }));
    assert.equal((await worker.ok("batch", { calls: calls(256) })).results.length, 256);
    for (const count of [0, 257]) {
      const { status, body } = await worker.call("batch", { calls: calls(count) });
      assert.deepEqual([status, body.error.field], [400, "calls"]);
    }
  });
});

describe("refusals name the field", () => {
  const key = "k";
  const cases = [
    ["consume", { limit: hour }, "bad_argument", "key"],
    ["consume", { key: "", limit: hour }, "bad_argument", "key"],
    ["consume", { key: 5, limit: hour }, "bad_argument", "key"],
    ["consume", { key }, "bad_policy", "limit"],
    ["consume", { key, limit: [] }, "bad_policy", "limit"],
    ["consume", { key, limit: 5 }, "bad_policy", "limit"],
    ["consume", { key, limit: { limit: 0, window: 1 } }, "bad_policy", "limit.limit"],
    ["consume", { key, limit: { limit: 1.5, window: 1 } }, "bad_policy", "limit.limit"],
    ["consume", { key, limit: { limit: 1 } }, "bad_policy", "limit.window"],
    ["consume", { key, limit: { limit: 1, window: "soon" } }, "bad_policy", "limit.window"],
    ["consume", { key, limit: { limit: 1, window: 31_536_000_001 } }, "bad_policy", "limit.window"],
    ["consume", { key, limit: { ...hour, burst: -1 } }, "bad_policy", "limit.burst"],
    ["consume", { key, limit: { ...hour, algorithm: "gcra" } }, "bad_policy", "limit.algorithm"],
    ["consume", { key, limit: { ...hour, strict: "yes" } }, "bad_policy", "limit.strict"],
    ["consume", { key, limit: { ...hour, name: "" } }, "bad_policy", "limit.name"],
    ["consume", { key, limit: { ...hour, windw: 1 } }, "bad_policy", "limit.windw"],
    ["consume", { key, limit: [hour, { ...hour, burst: 0 }] }, "bad_policy", "limit[1].burst"],
    ["consume", { key, limit: [hour, hour] }, "bad_policy", "limit.name"],
    ["consume", { key, limit: { limit: 2 ** 53 - 1, window: "1d" } }, "bad_policy", "limit.limit"],
    ["consume", { key, limit: hour, cost: 0 }, "bad_argument", "cost"],
    ["consume", { key, limit: hour, cost: "1" }, "bad_argument", "cost"],
    ["consume", { key, limit: hour, cost: 2 ** 53 }, "bad_argument", "cost"],
    ["consume", { key, limit: hour, costs: 1 }, "bad_argument", "costs"],
    ["consume", { key, limit: hour, prefix: "" }, "bad_argument", "prefix"],
    ["block", { key, limit: hour }, "bad_argument", "duration"],
    ["block", { key, limit: hour, duration: "-1s" }, "bad_argument", "duration"],
    ["first", { ttl: 1 }, "bad_argument", "id"],
    ["first", { id: "x" }, "bad_policy", "ttl"],
    ["claim", { id: "x", ttl: "1h", lease: 0 }, "bad_policy", "lease"],
    ["claim", { id: "x", ttl: "1h", payload: {} }, "bad_argument", "payload"],
    ["commit", { id: "x", ttl: "1h" }, "bad_argument", "token"],
    ["commit", { id: "x", ttl: "1h", token: "a b" }, "bad_argument", "token"],
    [
      "commit",
      { id: "x", ttl: "1h", token: "t", result: "x".repeat(65_536) },
      "bad_argument",
      "result",
    ],
    ["observe", { identity: "x", window: 1 }, "bad_policy", "threshold"],
    [
      "observe",
      { identity: "x", window: 1, threshold: 1, trigger: "both" },
      "bad_policy",
      "trigger",
    ],
    ["observe", { identity: "x", window: 1, threshold: 1, cooldown: -1 }, "bad_policy", "cooldown"],
    ["observe", { identity: "x", window: 1, threshold: 1, weight: 0 }, "bad_argument", "weight"],
    ["consume", [], "bad_argument", "body"],
    ["consume", "text", "bad_argument", "body"],
    ["consume", Object.fromEntries(Array(65).fill(1).entries()), "bad_argument", "body"],
    ["batch", {}, "bad_argument", "calls"],
  ];
  for (const [path, body, code, field] of cases) {
    test(`${path} ${JSON.stringify(body).slice(0, 80)}: ${field}`, async () => {
      const { status, body: answer } = await worker.call(path, body);
      assert.deepEqual([status, answer.error.code, answer.error.field], [400, code, field]);
      assert.match(answer.error.message, /\w/);
    });
  }

  test("of a batch, each with its call", async () => {
    const { results } = await worker.ok("batch", {
      calls: [
        { path: "consume", key: "k", limit: [] },
        { path: "consume", key: "k", limit: { ...hour, burst: 0 } },
      ],
    });
    assert.deepEqual(
      results.map(({ body }) => body.error.field),
      ["calls[0].limit", "calls[1].limit.burst"],
    );
  });

  test("a field that is there twice", async () => {
    const body = '{"key":"a","key":"b","limit":{"limit":1,"window":1}}';
    const { status, json } = await raw("/v1/consume", { body });
    assert.deepEqual([status, json.error.field], [400, "key"]);
  });
});

/** A request with nothing added but a token and a type, unless told otherwise. */
async function raw(path, { method = "POST", headers = {}, body, token = TOKEN, duplex } = {}) {
  const response = await fetch(worker.url + path, {
    method,
    headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
    body,
    duplex,
  });
  const text = await response.text();
  const json =
    response.headers.get("content-type") === "application/json" && text !== ""
      ? JSON.parse(text)
      : undefined;
  return { status: response.status, text, json, headers: response.headers };
}

describe("requests", () => {
  const body = JSON.stringify({ key: "k", limit: hour });

  test("no body, broken JSON, and bytes that are not UTF-8 are 400", async () => {
    for (const wrong of ["", "{", "nul", `${body}x`, Buffer.from([0x22, 0xff, 0x22])]) {
      const { status, json } = await raw("/v1/consume", { body: wrong });
      assert.deepEqual([status, json.error.code, json.error.field], [400, "bad_argument", "body"]);
    }
  });

  test("256 KiB are read, a byte more is not, whether its length is told or not", async () => {
    const padded = (length) => body + " ".repeat(length - body.length);
    const streamed = (text) => ({ body: new Blob([text]).stream(), duplex: "half" });
    for (const make of [(text) => ({ body: text }), streamed]) {
      assert.equal((await raw("/v1/peek", make(padded(262_144)))).status, 200);
      const { status, json } = await raw("/v1/peek", make(padded(262_145)));
      assert.deepEqual([status, json.error.code], [413, "too_large"]);
    }
  });

  test("JSON nested a hundred thousand deep is an answer like any other", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    assert.equal((await raw("/v1/consume", { body: deep })).status, 400);
    const { status, json } = await raw("/v1/commit", {
      body: `{"id":"deep","token":"t","ttl":1,"result":${deep}}`,
    });
    assert.deepEqual([status, json.error.field], [400, "result"]);
  });

  test("other types, methods and paths", async () => {
    assert.equal(
      (await raw("/v1/consume", { body, headers: { "content-type": "text/plain" } })).status,
      415,
    );
    assert.equal(
      (
        await raw("/v1/consume", {
          body,
          headers: { "content-type": "Application/JSON; charset=utf-8" },
        })
      ).status,
      200,
    );
    const { status, headers, json } = await raw("/v1/consume", { method: "GET" });
    assert.deepEqual([status, headers.get("allow")], [405, "POST"]);
    assert.deepEqual(Object.keys(json.error), ["code", "message"]);
    for (const path of ["/v1/nothing", "/v1/", "/v1", "/v1/consume/", "/v1/Consume", "/nowhere"]) {
      assert.equal((await raw(path, { body })).status, 404, path);
    }
    assert.equal((await raw("/healthz", { body })).status, 405);
  });

  test("health and the document need no token", async () => {
    const options = { method: "GET", token: "" };
    assert.deepEqual(Object.keys((await raw("/healthz", options)).json), ["ok", "version"]);
    assert.match((await raw("/openapi.json", options)).json.openapi, /^3\.1/);
  });
});

describe("tokens", () => {
  const body = JSON.stringify({ key: "k", limit: hour });

  test("none, a wrong one, one that is longer, and one in another place are refused", async () => {
    for (const token of [
      "",
      "x".repeat(20),
      `${TOKEN}x`,
      TOKEN.slice(0, -1),
      TOKEN.toUpperCase(),
    ]) {
      const { status, json, headers } = await raw("/v1/consume", { body, token });
      assert.deepEqual([status, json.error.code], [401, "unauthorized"]);
      assert.equal(headers.get("www-authenticate"), "Bearer");
    }
    assert.equal((await raw(`/v1/consume?token=${TOKEN}`, { body, token: "" })).status, 401);
    assert.equal((await raw("/metrics", { method: "GET", token: "" })).status, 401);
  });

  test("one with a prefix sees only what is under it", async () => {
    const limit = { limit: 1, window: "1h" };
    const key = fresh();
    const consume = (prefix, token) => worker.call("consume", { key, limit, prefix }, token);
    assert.equal((await consume("app", TOKEN)).body.allowed, true);
    assert.equal((await consume("app", BOUND_TOKEN)).body.allowed, false);
    assert.equal((await consume(undefined, BOUND_TOKEN)).body.allowed, false);
    assert.equal((await consume("app/chat", BOUND_TOKEN)).body.allowed, true);
    assert.equal((await consume(undefined, TOKEN)).body.allowed, true);
    const long = `app/${"y".repeat(300)}`;
    for (const prefix of ["tg", "application", "ap", "App", " app", long]) {
      const { status, body } = await consume(prefix, BOUND_TOKEN);
      assert.deepEqual([status, body.error.code, body.error.field], [403, "forbidden", "prefix"]);
    }
    const { results } = await worker.ok(
      "batch",
      {
        calls: [
          { path: "has", id: "x", prefix: "tg" },
          { path: "has", id: "x" },
        ],
      },
      BOUND_TOKEN,
    );
    assert.deepEqual(
      results.map(({ status }) => status),
      [403, 200],
    );
    assert.equal((await raw("/metrics", { method: "GET", token: BOUND_TOKEN })).status, 403);
  });

  test("without one that is set, or with one that is short, nothing is served", async () => {
    for (const TIDEGATE_TOKEN of [undefined, "", "short", `${TOKEN},short=app`]) {
      const bare = await serve({ env: TIDEGATE_TOKEN === undefined ? {} : { TIDEGATE_TOKEN } });
      try {
        const { status, body } = await bare.call("consume", { key: "k", limit: hour });
        assert.deepEqual([status, body.error.code], [503, "not_configured"]);
        assert.equal((await fetch(`${bare.url}/metrics`)).status, 503);
        assert.equal((await fetch(`${bare.url}/healthz`)).status, 200);
      } finally {
        await bare.stop();
      }
    }
  });
});

describe("results that are longer than a reply may be", () => {
  // Three times as long in ASCII: 43 of them are 8 MiB.
  const result = "é".repeat(32_000);
  const looks = (ids) => ids.map((id) => ({ path: "look", id }));
  const keep = async (id) => {
    const { token } = await worker.ok("claim", { id, ttl: "1h" });
    await worker.ok("commit", { id, token, ttl: "1h", result });
    return id;
  };
  const highest = () =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${worker.pid}/status`, "utf8"))[1]) / 1024;

  test("of one object: the calls beyond it are refused, and say so", async () => {
    const id = await keep("long");
    const { results } = await worker.ok("batch", { calls: looks(Array(256).fill(id)) });
    const statuses = results.map(({ status }) => status);
    assert.deepEqual([...new Set(statuses)], [200, 503]);
    const given = statuses.lastIndexOf(200) + 1;
    assert.equal(given, 43);
    assert.equal(results[0].body.result, result);
    assert.match(results.at(-1).body.error.message, /more results than fit/);
  });

  test("of many objects", async () => {
    const ids = await Promise.all(Array.from({ length: 64 }, (_, index) => keep(`long ${index}`)));
    const before = highest();
    const calls = [...looks(ids), ...looks(ids), ...looks(ids), ...looks(ids)];
    const { results } = await worker.ok("batch", { calls });
    const given = results.filter(({ status }) => status === 200).length;
    assert.ok(given > 10 && given < 44, `${given} results`);
    assert.ok(results.every(({ status }) => [200, 413, 503].includes(status)));
    const grown = highest() - before;
    assert.ok(grown < 128, `${Math.round(grown)} MiB`);
  });

  test("in the store's own words", async () => {
    const id = await keep("steps");
    const body = `1;${`\ntg:m:${id}\tL;`.repeat(256)}`;
    const { status, text } = await raw("/v1/steps", {
      body,
      headers: { "content-type": "text/plain" },
    });
    assert.equal(status, 200);
    assert.ok(text.length < 9 * 2 ** 20, `${text.length} bytes`);
    assert.match(text, /more results than fit/);
  });
});

test("metrics are summed over the shards", async () => {
  const counted = async () => {
    const { text } = await raw("/metrics", { method: "GET" });
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return Object.fromEntries(
      lines.map((line) => [line.split(" ")[0], Number(line.split(" ")[1])]),
    );
  };
  const before = await counted();
  await worker.ok("batch", {
    calls: Array.from({ length: 100 }, fresh).flatMap((key) =>
      [
        { path: "consume", key, limit: hour, cost: 3 },
        { path: "consume", key, limit: hour },
        { path: "peek", key, limit: hour },
      ].slice(0, 2),
    ),
  });
  const grown = await counted();
  for (const reason of ["ok", "limited"]) {
    const name = `tidegate_decisions_total{reason="${reason}"}`;
    assert.equal(grown[name] - before[name], 100);
  }
  assert.ok(Math.abs(grown.tidegate_oldest_shard_start_time_seconds - Date.now() / 1000) < 60);
});
