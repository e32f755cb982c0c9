// Calls to a store that does not answer: each ends at its own deadline, and none keeps a process alive for longer.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Limiter, onEvent, storeFrom } from "tidegate";

const limit = { limit: 5, window: "1h" };
const never = new Promise(() => {});

// A timer counts from when the engine last looked at the clock, which may be a while before it was set.

/** A limiter over a store that answers for keys with "ok" in them, and for others what `get` does. */
function limiterOver(get, options = {}) {
  const store = storeFrom({
    get: (key) => (key.includes("ok") ? null : get()),
    compareAndSet: () => true,
  });
  return new Limiter({ limit, store, timeout: 150, ...options });
}

const took = async (promise) => {
  const start = performance.now();
  const reason = await promise.then(
    ({ reason }) => reason,
    ({ code }) => code,
  );
  return { reason, ms: performance.now() - start };
};

test("calls of several ticks end each in its own time", async () => {
  const limiter = limiterOver(() => never);
  const calls = [];
  for (let call = 0; call < 4; call += 1) {
    calls.push(took(limiter.consume("hangs")));
    await pause(30);
  }
  for (const { reason, ms } of await Promise.all(calls)) {
    assert.equal(reason, "timeout");
    assert.ok(ms > 120 && ms < 1_000, `${ms}`);
  }
});

test("those that are answered disturb none that are not, in the same tick or later", async () => {
  const limiter = limiterOver(() => never, { onStoreError: "deny" });
  for (let round = 0; round < 3; round += 1) {
    const keys = Array.from({ length: 4 }, (_, at) => (at % 2 ? `ok ${round} ${at}` : "hangs"));
    const calls = await Promise.all(keys.map((key) => took(limiter.consume(key))));
    const reasons = calls.map(({ reason }) => reason);
    assert.deepEqual(reasons, ["timeout", "ok", "timeout", "ok"]);
    await limiter.consume(`ok between ${round}`);
  }
});

test("who asks again while being told of a deadline has one too", async () => {
  const limiter = limiterOver(() => never);
  let again;
  const end = onEvent(({ type }) => {
    if (type === "store-error") again ??= took(limiter.consume("hangs"));
  });
  assert.equal((await took(limiter.consume("hangs"))).reason, "timeout");
  const { reason, ms } = await again;
  end();
  assert.equal(reason, "timeout");
  assert.ok(ms > 120, `${ms}`);
});

test("what comes after the deadline changes nothing", async () => {
  const rejections = [];
  const note = (reason) => rejections.push(reason);
  process.on("unhandledRejection", note);
  const limiter = limiterOver(() => pause(200).then(() => Promise.reject(new Error("late"))));
  const calls = await Promise.all([1, 2].map(() => took(limiter.consume("late"))));
  assert.deepEqual(
    calls.map(({ reason }) => reason),
    ["timeout", "timeout"],
  );
  await pause(150);
  assert.equal((await limiter.consume("ok")).reason, "ok");
  assert.deepEqual(rejections, []);
  process.off("unhandledRejection", note);
});

test("an answer that waited for this process to come round is one in time", async () => {
  const heldUp = () => {
    const answer = stat(import.meta.filename).then(() => null);
    for (const until = performance.now() + 200; performance.now() < until; );
    return answer;
  };
  const limiter = limiterOver(heldUp, { timeout: 50 });
  // From there the engine looks at its timers before it reads anything.
  await new Promise(setImmediate);
  assert.equal((await limiter.consume("key")).reason, "ok");
});

/** Runs a program that prints what became of one call. */
async function program(key, timeout) {
  const source = `
    import { Limiter, storeFrom } from "tidegate";
    const store = storeFrom({
      get: (key) => (key.includes("ok") ? null : new Promise(() => {})),
      compareAndSet: () => true,
    });
    const limiter = new Limiter({ limit: { limit: 5, window: "1h" }, store, timeout: "${timeout}" });
    await limiter.consume("ok first");
    limiter.consume("${key}").then(() => console.log("ok"), ({ code }) => console.log(code));
  `;
  const options = { cwd: import.meta.dirname, timeout: 30_000 };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", source],
    options,
  );
  return stdout.trim();
}

test("a process ends when its calls are answered, and not before", async () => {
  assert.equal(await program("ok", "1h"), "ok");
  assert.equal(await program("hangs", "300ms"), "timeout");
});
