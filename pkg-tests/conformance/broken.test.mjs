// A suite that nothing fails proves nothing: each of these stores breaks one promise, and is found out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as tick } from "node:timers/promises";
import { storeFrom } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { mapStore } from "./stores/map.mjs";

/** Runs the suite, or some cases of it, on what `spoil` makes of a good store, and answers what fails. */
async function failures(spoil, names) {
  let now = 1_700_000_000_123;
  let adapter;
  const makeStore = () => {
    adapter = spoil(mapStore(() => now));
    return storeFrom(adapter);
  };
  const options = {
    advance: async (ms) => {
      now += ms;
    },
    size: () => adapter.size(),
  };
  const cases = new Map();
  storeConformance((name, body) => cases.set(name, body), makeStore, options);
  const failed = [];
  for (const name of names ?? cases.keys()) {
    await cases
      .get(name)()
      .catch((error) => {
        assert.match(error.message, /\S/, `the error of "${name}" says what is wrong`);
        failed.push(name);
      });
  }
  return failed;
}

/** The store is found out, by each of these cases. */
function isFoundOut(title, spoil, ...names) {
  test(title, async () => {
    assert.deepEqual(await failures(spoil, names), names);
  });
}

const oneClaim = "50 claims at once: one is fresh";
const oneFirst = "50 at once on one id: one is first";
const oneFiring = "50 observations at once: one fires, each is counted";
const limitKept = "50 at once on a fixed window: the limit is admitted";
const enforced = "a fixed window admits its limit";
const livesOn = "a write makes a record live as long as what it holds";

test("a good store fails nothing", async () => {
  assert.deepEqual(await failures((good) => good), []);
});

// ── the conditional write ───────────────────────────────────────────────

/** Writes whatever is there. */
async function overwrite(good, key, next, ttlMs) {
  while (!(await good.compareAndSet(key, await good.get(key), next, ttlMs))) {
    // Somebody wrote in between: once more.
  }
  return true;
}

/** What a store does that reads, compares, and writes in three steps. */
const readCompareWrite = (good) => ({
  ...good,
  async compareAndSet(key, expected, next, ttlMs) {
    const current = await good.get(key);
    await tick();
    return current === expected && overwrite(good, key, next, ttlMs);
  },
});

isFoundOut(
  "a conditional write in three steps",
  readCompareWrite,
  ...[oneClaim, oneFirst, oneFiring, limitKept],
);

test("the same store passes when it says that it loses races", async () => {
  const honest = (good) => ({ ...readCompareWrite(good), atomicity: "best-effort" });
  assert.deepEqual(await failures(honest), []);
});

isFoundOut(
  "a write that compares nothing",
  (good) => ({
    ...good,
    compareAndSet: (key, _, next, ttlMs) => overwrite(good, key, next, ttlMs),
  }),
  ...[oneClaim, oneFirst, oneFiring, limitKept],
);

isFoundOut(
  "an insert that replaces what is there",
  (good) => ({
    ...good,
    compareAndSet: (key, expected, next, ttlMs) =>
      expected === null
        ? overwrite(good, key, next, ttlMs)
        : good.compareAndSet(key, expected, next, ttlMs),
  }),
  ...[oneClaim, oneFirst],
);

isFoundOut(
  "a write that answers true and does nothing",
  (good) => ({ ...good, compareAndSet: async () => true }),
  ...[enforced, "an id is first once"],
);

isFoundOut(
  "a write that answers true when it lost",
  (good) => ({
    ...good,
    compareAndSet: (...args) => good.compareAndSet(...args).then(() => true),
  }),
  ...[oneClaim, oneFirst, oneFiring, limitKept],
);

isFoundOut(
  "a write that answers false when it won",
  (good) => ({
    ...good,
    compareAndSet: (...args) => good.compareAndSet(...args).then(() => false),
  }),
  ...[enforced, "an id is first once"],
);

isFoundOut(
  "a write that succeeds nine times of ten, and always says so",
  (good) => {
    let writes = 0;
    return {
      ...good,
      async compareAndSet(...args) {
        writes += 1;
        return writes % 10 === 0 ? true : good.compareAndSet(...args);
      },
    };
  },
  limitKept,
);

// ── expiry ──────────────────────────────────────────────────────────────

isFoundOut(
  "a store that forgets the time to live",
  (good) => ({
    ...good,
    compareAndSet: (key, expected, next) => good.compareAndSet(key, expected, next, 1e15),
  }),
  "nothing stays for ever",
);

isFoundOut(
  "a store that takes milliseconds for seconds",
  (good) => ({
    ...good,
    compareAndSet: (key, expected, next, ttlMs) =>
      good.compareAndSet(key, expected, next, ttlMs / 1_000),
  }),
  ...[livesOn, "leaky bucket: retryAfterMs and resetAfterMs are exact"],
);

isFoundOut(
  "a store whose first time to live is the last",
  (good) => {
    const expires = new Map();
    return {
      ...good,
      async compareAndSet(key, expected, next, ttlMs) {
        const now = await good.now();
        if (expected === null) expires.set(key, now + ttlMs);
        return good.compareAndSet(key, expected, next, Math.max(expires.get(key) - now, 1));
      },
    };
  },
  livesOn,
);

isFoundOut(
  "a store that keeps nothing for longer than a minute",
  (good) => ({
    ...good,
    compareAndSet: (key, expected, next, ttlMs) =>
      good.compareAndSet(key, expected, next, Math.min(ttlMs, 60_000)),
  }),
  livesOn,
);

isFoundOut(
  "a clock that counts in seconds",
  (good) => ({ ...good, now: async () => Math.floor((await good.now()) / 1_000) * 1_000 }),
  "leaky bucket: retryAfterMs and resetAfterMs are exact",
);

isFoundOut(
  "a clock that answers seconds",
  (good) => ({ ...good, now: async () => (await good.now()) / 1_000 }),
  "leaky bucket: retryAfterMs and resetAfterMs are exact",
);

// ── keys and values ─────────────────────────────────────────────────────

/** A store that keeps other keys than it is given. */
const withKeys = (change) => (good) => ({
  ...good,
  get: (key) => good.get(change(key)),
  compareAndSet: (key, ...rest) => good.compareAndSet(change(key), ...rest),
});
const keysMeet = "keys of limits never meet";
const idsMeet = "message ids never meet";

isFoundOut(
  "keys without their case",
  withKeys((key) => key.toLowerCase()),
  keysMeet,
  idsMeet,
);
isFoundOut(
  "keys without their last space",
  withKeys((key) => key.trimEnd()),
  keysMeet,
  idsMeet,
);
isFoundOut(
  "keys cut at 100 characters",
  withKeys((key) => key.slice(0, 100)),
  keysMeet,
  idsMeet,
);
isFoundOut(
  "keys without their colons",
  withKeys((key) => key.replaceAll(":", "")),
  keysMeet,
  idsMeet,
);
isFoundOut(
  "keys that are paths",
  withKeys((key) => key.replace(/[^\w-]/g, "_")),
  keysMeet,
  idsMeet,
);
isFoundOut(
  "keys without what follows the prefix's first 40 characters",
  withKeys((key) => key.slice(0, 40) + key.slice(key.lastIndexOf(":"))),
  "prefixes and keys never meet",
);

/** A store that keeps other values than it is given. */
const withValues = (change) => (good) => ({
  ...good,
  compareAndSet: (key, expected, next, ttlMs) =>
    good.compareAndSet(key, expected === null ? null : change(expected), change(next), ttlMs),
});
const largeKept = "a result of 64 KiB is kept, a larger one refused";

isFoundOut(
  "values cut at 255 characters",
  withValues((text) => text.slice(0, 255)),
  largeKept,
);
isFoundOut(
  "values cut at 65 535 characters",
  withValues((text) => text.slice(0, 65_535)),
  largeKept,
);
isFoundOut(
  "values without their backslashes",
  withValues((text) => text.replaceAll("\\", "")),
  "a result comes back as it was, whatever is in it",
);

isFoundOut(
  "a read from a replica that lags by one write",
  (good) => {
    const old = new Map();
    return {
      ...good,
      get: async (key) => old.get(key) ?? null,
      async compareAndSet(key, ...rest) {
        const before = await good.get(key);
        const wrote = await good.compareAndSet(key, ...rest);
        old.set(key, before);
        return wrote;
      },
    };
  },
  "fixed window: peek tells what consume would, and changes nothing",
);
