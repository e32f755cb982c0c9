// The fields, read by a library that knows structured fields: draft-ietf-httpapi-ratelimit-headers-11.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseList } from "structured-headers";
import { Limiter, leakyBucket } from "tidegate";
import { limitFetch } from "tidegate/http";
import { frozenStore } from "../core/clock.mjs";

const request = new Request("http://localhost/");
const key = () => "everybody";

async function fieldsOf(limit, options) {
  const { headers } = await limitFetch({ limit, key, ...options })(request);
  const [policy, state] = ["RateLimit-Policy", "RateLimit"].map((name) =>
    parseList(headers[name]).map(([item, parameters]) => [item, Object.fromEntries(parameters)]),
  );
  return { policy, state };
}

test("windows are whole seconds; others are told as what that many of them admit", async () => {
  const told = async (limit) => (await fieldsOf(limit)).policy[0][1];
  assert.deepEqual(await told({ limit: 5, window: "1h" }), { q: 5, w: 3600 });
  assert.deepEqual(await told({ limit: 5, window: 250 }), { q: 20, w: 1 });
  assert.deepEqual(await told({ limit: 5, window: "1.5s" }), { q: 10, w: 3 });
  assert.deepEqual(await told({ limit: 1, window: 7 }), { q: 1000, w: 7 });
  assert.deepEqual(await told(leakyBucket(20, 2.5)), { q: 5, w: 2 });
  assert.deepEqual(await told(leakyBucket(20, 100)), { q: 100, w: 1 });
});

test("names are Strings, whatever is in them", async () => {
  const names = ["plain", 'a "quoted" \\ name', "ä \ud83d\ude00", "\ud800", "line\nbreak"];
  const told = [];
  for (const name of names) {
    const { policy, state } = await fieldsOf({ name, limit: 5, window: "1s" });
    assert.equal(policy[0][0], state[0][0]);
    told.push(policy[0][0]);
  }
  assert.deepEqual(told, [
    ...names.slice(0, 2),
    ...["%C3%A4 %F0%9F%98%80", "%EF%BF%BD", "line%0Abreak"],
  ]);
});

test("the largest numbers are Integers still", async () => {
  const limit = { algorithm: "fixed-window", limit: Number.MAX_SAFE_INTEGER, window: "365d" };
  const { policy, state } = await fieldsOf(limit);
  assert.deepEqual(policy[0][1], { q: 999_999_999_999_999, w: 31_536_000 });
  assert.deepEqual(state[0][1], { r: 999_999_999_999_999, t: 31_536_000 });
});

test("a key that is blocked: nothing is left, and Retry-After is the block's", async () => {
  const { store } = frozenStore();
  const limit = { limit: 5, window: "1m" };
  await new Limiter({ limit, store }).block("everybody", 90_001);
  const { response, decision, headers } = await limitFetch({ limit, key, store })(request);
  assert.equal(decision.reason, "blocked");
  assert.deepEqual([headers.RateLimit, headers["Retry-After"]], ['"default";r=0;t=91', "91"]);
  assert.equal((await response.json()).type, "about:blank");
});

test("Retry-After never lies before the end of the window that RateLimit tells", async () => {
  const { clock, store } = frozenStore();
  const algorithms = ["leaky-bucket", "fixed-window", "sliding-window"];
  const limits = algorithms.map((algorithm) =>
    limitFetch({ limit: { name: algorithm, algorithm, limit: 7, window: "10s" }, key, store }),
  );
  let refusals = 0;
  for (let step = 0; step < 300; step += 1) {
    clock.ms += (step * 7919) % 900;
    const { decision, headers } = await limits[step % 3](request);
    if (decision.allowed) continue;
    refusals += 1;
    const [[, parameters]] = parseList(headers.RateLimit);
    const seconds = Number(headers["Retry-After"]);
    assert.ok(seconds >= parameters.get("t"), JSON.stringify(headers));
    assert.equal(seconds, Math.ceil(decision.retryAfterMs / 1000));
  }
  assert.ok(refusals > 20, String(refusals));
});
