// A full stack may interrupt a call anywhere in the core. That call throws; all others go on as if nothing had been.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Deduplicator, ipKey, Limiter } from "tidegate";

const ROUNDS = 50;

const limiterOf = (...names) =>
  new Limiter({ limit: names.map((name) => ({ name, limit: 1_000_000, window: "1h" })) });

/**
 * Fills the stack, and on the way back makes the call with ever more room, until it has enough: how often it had not.
 */
function overflow(call) {
  let interrupted = 0;
  let isDone = false;
  const dive = () => {
    try {
      dive();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
    if (isDone) return;
    try {
      call();
      isDone = true;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      interrupted += 1;
    }
  };
  dive();
  return interrupted;
}

let turn = 0;
const next = () => {
  turn += 1;
  return `key ${turn}`;
};

const calls = () => {
  const [one, two] = [limiterOf("a"), limiterOf("a", "b")];
  const handle = one.handle("known");
  return {
    "tryConsume of a handle": () => handle.tryConsume(),
    "consumeSync of a known key": () => one.consumeSync("known"),
    "consumeSync of new keys": () => one.consumeSync(next()),
    "consumeSync with two limits": () => two.consumeSync(next()),
    "a Limiter": () => limiterOf("a", "b"),
    ipKey: () => ipKey("2001:db8::1"),
    "a long key": () => one.consumeSync(next().repeat(100)),
  };
};

async function works() {
  const limiter = limiterOf("a", "b");
  const { allowed, remaining } = limiter.consumeSync(next());
  assert.deepEqual([allowed, remaining], [true, 999_999]);
  assert.equal((await limiter.peek("new")).reason, "ok");
  await limiter.block("blocked", "1h");
  assert.equal(limiter.consumeSync("blocked").reason, "blocked");
  const ids = new Deduplicator({ ttl: "1h" });
  assert.deepEqual([await ids.first("id"), await ids.first("id")], [true, false]);
  assert.equal(ipKey("2001:db8::1"), ipKey("2001:DB8:0::1"));
  assert.throws(() => limiterOf("a", "a"), { code: "bad_policy" });
  assert.throws(() => new Limiter({ limit: { limit: -1, window: "1h" } }), { code: "bad_policy" });
  for (const key of ["a".repeat(300), "b".repeat(300)]) {
    assert.equal(limiter.consumeSync(key).remaining, 999_999);
  }
}

for (const [name, call] of Object.entries(calls())) {
  test(`${name}, interrupted`, async () => {
    let interrupted = 0;
    for (let round = 0; round < ROUNDS; round += 1) interrupted += overflow(call);
    assert.ok(interrupted > ROUNDS, `${interrupted} calls were interrupted`);
    await works();
    assert.doesNotThrow(call);
  });
}
