import type { Limiter } from "../limiter.js";
import type { LimitOptions } from "../limits.js";
import { fields, refused, same, within } from "./expect.js";
import type { Case, Trial } from "./trial.js";

/** Every algorithm, each with a capacity of five. */
export const ALGORITHMS: readonly { title: string; limit: Omit<LimitOptions, "window"> }[] = [
  { title: "leaky bucket", limit: { algorithm: "leaky-bucket", limit: 5 } },
  { title: "token bucket", limit: { algorithm: "token-bucket", limit: 5 } },
  { title: "strict bucket", limit: { limit: 9, strict: true } },
  { title: "fixed window", limit: { algorithm: "fixed-window", limit: 5 } },
  { title: "sliding window", limit: { algorithm: "sliding-window", limit: 5 } },
];
export const CAPACITY = 5;

type Body = (trial: Trial, limiter: Limiter) => Promise<void>;

/** One case for each algorithm. */
function forEach(what: string, body: Body): Case[] {
  return ALGORITHMS.map(({ title, limit }) => ({
    name: `${title}: ${what}`,
    needs: ["records"],
    body: (trial) => body(trial, trial.limiter({ ...limit, window: trial.longMs })),
  }));
}

/** What limits owe, whatever the clock does. */
export const limitCases: readonly Case[] = [
  { name: "a fixed window admits its limit", needs: [], body: oneAtATime },
  ...forEach("an absent key is whole, and peek leaves it absent", absentKey),
  ...forEach("the limit is admitted, one more is denied", exactlyTheLimit),
  ...forEach("a denied call charges nothing", deniedIsFree),
  ...forEach("a cost of the capacity fits, one above it never does", costs),
  ...forEach("peek tells what consume would, and changes nothing", peekIsFree),
  ...forEach("a refund gives back, never above a full budget", refunds),
  ...forEach("a refund creates nothing", refundOfNothing),
  ...forEach("a block denies until it is lifted, and keeps the budget", blocks),
  ...forEach("reset forgets one key and its block", resets),
  { name: "several limits are charged together or not at all", needs: ["records"], body: several },
  { name: "eight limits share one record", needs: ["records"], body: eightLimits },
  {
    name: "limiters of one prefix share a key's block, and limits of one name",
    needs: ["records"],
    body: sharedKey,
  },
  {
    name: "what was used stays used when the policy changes",
    needs: ["records"],
    body: policyChange,
  },
];

/** What even a five-method store can do. */
async function oneAtATime(trial: Trial): Promise<void> {
  const limit = { algorithm: "fixed-window", limit: 3, window: trial.longMs } as const;
  const limiter = trial.limiter(limit);
  for (const remaining of [2, 1, 0]) {
    const expected = { allowed: true, reason: "ok", limit: 3, remaining, retryAfterMs: 0 };
    fields(await limiter.consume("key"), expected, "a call within the limit");
  }
  const denied = await limiter.consume("key");
  fields(denied, { allowed: false, reason: "limited", remaining: 0 }, "a call above the limit");
  within(denied.retryAfterMs, 1, trial.longMs, "retryAfterMs");
  same((await limiter.consume("other")).remaining, 2, "remaining of another key");
}

async function absentKey(_: Trial, limiter: Limiter): Promise<void> {
  const whole = { allowed: true, reason: "ok", limit: CAPACITY, remaining: CAPACITY };
  const expected = { ...whole, retryAfterMs: 0, resetAfterMs: 0, limitName: "default" };
  fields(await limiter.peek("key"), expected, "peek at an absent key");
  await limiter.unblock("key");
  await limiter.reset("key");
  fields(await limiter.peek("key"), expected, "peek after unblock and reset of an absent key");
}

async function exactlyTheLimit(trial: Trial, limiter: Limiter): Promise<void> {
  for (let remaining = CAPACITY - 1; remaining >= 0; remaining -= 1) {
    const decision = await limiter.consume("key");
    const expected = { allowed: true, reason: "ok", limit: CAPACITY, remaining, retryAfterMs: 0 };
    fields(decision, expected, "a call within the limit");
    within(decision.resetAfterMs, 1, 2 * trial.longMs, "resetAfterMs");
  }
  const denied = await limiter.consume("key");
  const expected = { allowed: false, reason: "limited", limit: CAPACITY, remaining: 0 };
  fields(denied, { ...expected, limitName: "default", dryRun: false }, "a call above the limit");
  within(denied.retryAfterMs, 1, 2 * trial.longMs, "retryAfterMs");
  within(denied.resetAfterMs, denied.retryAfterMs, 2 * trial.longMs, "resetAfterMs");
}

async function deniedIsFree(_: Trial, limiter: Limiter): Promise<void> {
  same((await limiter.consume("key", { cost: 3 })).remaining, 2, "remaining after a cost of 3");
  for (let i = 0; i < 3; i += 1) {
    const denied = await limiter.consume("key", { cost: 3 });
    fields(denied, { allowed: false, reason: "limited", remaining: 2 }, "a cost that does not fit");
  }
  await exactly(limiter, "key", 2, "after denied calls");
}

async function costs(_: Trial, limiter: Limiter): Promise<void> {
  const never = await limiter.consume("key", { cost: CAPACITY + 1 });
  const expected = { allowed: false, reason: "never", retryAfterMs: Number.POSITIVE_INFINITY };
  fields(never, { ...expected, remaining: CAPACITY }, "a cost above the capacity");
  const all = await limiter.consume("key", { cost: CAPACITY });
  fields(all, { allowed: true, remaining: 0 }, "a cost of the whole capacity");
  for (const cost of [0, -1, 1.5, Number.NaN, 2 ** 53]) {
    await refused(() => limiter.consume("key", { cost }), "bad_argument", `a cost of ${cost}`);
  }
}

async function peekIsFree(_: Trial, limiter: Limiter): Promise<void> {
  await limiter.consume("key", { cost: 2 });
  for (let i = 0; i < 3; i += 1) {
    fields(await limiter.peek("key"), { allowed: true, remaining: 3, retryAfterMs: 0 }, "peek");
  }
  const fits = await limiter.peek("key", { cost: 3 });
  fields(fits, { allowed: true, remaining: 3 }, "peek at a cost that fits");
  const above = await limiter.peek("key", { cost: 4 });
  fields(above, { allowed: false, reason: "limited", remaining: 3 }, "peek at one that does not");
  const never = await limiter.peek("key", { cost: CAPACITY + 1 });
  fields(never, { allowed: false, reason: "never", remaining: 3 }, "peek at one that never does");
  const denied = await limiter.consume("key", { cost: 4 });
  same(denied.allowed, above.allowed, "consume after the same peek");
  within(
    above.retryAfterMs,
    denied.retryAfterMs,
    above.retryAfterMs + 10_000,
    "peek's retryAfterMs",
  );
  await exactly(limiter, "key", 3, "after peeks");
}

async function refunds(_: Trial, limiter: Limiter): Promise<void> {
  await limiter.consume("key", { cost: 4 });
  await limiter.refund("key", 2);
  same((await limiter.peek("key")).remaining, 3, "remaining after a refund");
  await limiter.refund("key", { cost: 1000 });
  const whole = { remaining: CAPACITY, resetAfterMs: 0 };
  fields(await limiter.peek("key"), whole, "peek after a refund of more than was used");
  await exactly(limiter, "key", CAPACITY, "after refunds");
}

async function refundOfNothing(_: Trial, limiter: Limiter): Promise<void> {
  await limiter.refund("key", 3);
  const whole = { remaining: CAPACITY, resetAfterMs: 0 };
  fields(await limiter.peek("key"), whole, "peek after a refund of an absent key");
  await exactly(limiter, "key", CAPACITY, "after a refund of an absent key");
}

async function blocks(trial: Trial, limiter: Limiter): Promise<void> {
  const durationMs = 3 * trial.longMs;
  await limiter.consume("key", { cost: 2 });
  await limiter.block("key", durationMs);
  for (const answer of [await limiter.peek("key"), await limiter.consume("key")]) {
    fields(answer, { allowed: false, reason: "blocked", remaining: 0 }, "a blocked key");
    within(answer.retryAfterMs, durationMs - 60_000, durationMs, "retryAfterMs of a blocked key");
    within(answer.resetAfterMs, answer.retryAfterMs, durationMs, "resetAfterMs of a blocked key");
  }
  const never = await limiter.consume("key", { cost: CAPACITY + 1 });
  same(never.reason, "never", "the reason of a cost above the capacity on a blocked key");
  same((await limiter.peek("other")).remaining, CAPACITY, "remaining of another key");
  await limiter.unblock("key");
  await exactly(limiter, "key", 3, "after unblock");

  await limiter.block("unused", durationMs);
  same((await limiter.consume("unused")).reason, "blocked", "the reason of a key not used before");
  await limiter.unblock("unused");
  await exactly(limiter, "unused", CAPACITY, "after unblock of a key not used before");
}

async function resets(trial: Trial, limiter: Limiter): Promise<void> {
  const others = ["key:1", "keys", "ke", "key*", "*", "Key"];
  for (const key of ["key", ...others]) await limiter.consume(key, { cost: CAPACITY });
  await limiter.block("key", trial.longMs);
  await limiter.reset("key");
  await exactly(limiter, "key", CAPACITY, "after reset");
  for (const other of others) {
    same((await limiter.consume(other)).allowed, false, `${other} after reset of "key"`);
  }
}

async function several(trial: Trial): Promise<void> {
  const window = trial.longMs;
  const limiter = trial.limiter([
    { name: "small", limit: 3, window },
    { name: "large", algorithm: "fixed-window", limit: 10, window: 2 * window },
    { name: "sliding", algorithm: "sliding-window", limit: 8, window },
  ]);
  const first = await limiter.consume("key", { cost: 3 });
  fields(first, { allowed: true, remaining: 0, limit: 3, limitName: "small" }, "the first call");
  for (let i = 0; i < 3; i += 1) {
    const denied = await limiter.consume("key");
    const expected = { allowed: false, reason: "limited", remaining: 0, limitName: "small" };
    fields(denied, { ...expected, limit: 3 }, "a call that one of the limits denies");
    within(denied.resetAfterMs, window, 2 * window, "resetAfterMs, the longest of all");
  }
  // The others see what the denied calls left of them when the small one is out of the way.
  const large = trial.limiter({
    name: "large",
    algorithm: "fixed-window",
    limit: 10,
    window: 2 * window,
  });
  const sliding = trial.limiter({ name: "sliding", algorithm: "sliding-window", limit: 8, window });
  same((await large.peek("key")).remaining, 7, "the large limit's remaining after denied calls");
  same(
    (await sliding.peek("key")).remaining,
    5,
    "the sliding limit's remaining after denied calls",
  );
  // Of two that deny, the one with the longer wait is named.
  await large.consume("key", { cost: 7 });
  same((await limiter.consume("key")).limitName, "large", "the limit with the longest wait");
  const never = await limiter.consume("key", { cost: 4 });
  fields(never, { reason: "never", limitName: "small" }, "a cost above one of the capacities");
}

async function eightLimits(trial: Trial): Promise<void> {
  const names = Array.from({ length: 8 }, (_, at) => `limit-with-a-name-${at}`);
  const limiter = trial.limiter(
    names.map((name, at) => {
      const { limit } = ALGORITHMS[at % ALGORITHMS.length] as (typeof ALGORITHMS)[number];
      return { ...limit, name, window: trial.longMs + at };
    }),
  );
  await limiter.consume("key", { cost: 2 });
  await exactly(limiter, "key", CAPACITY - 2, "of eight limits");
}

async function sharedKey(trial: Trial): Promise<void> {
  const window = trial.longMs;
  const one = trial.limiter({ name: "one", limit: 3, window });
  const other = trial.limiter({ name: "other", limit: 3, window });
  const again = trial.limiter({ name: "one", limit: 3, window });
  await one.consume("key", { cost: 2 });
  same((await again.peek("key")).remaining, 1, "remaining of the same name");
  same((await other.peek("key")).remaining, 3, "remaining of another name");
  await other.consume("key");
  await one.block("key", window);
  same((await other.consume("key")).reason, "blocked", "the reason at another limiter of the key");
  await other.unblock("key");
  same((await one.consume("key")).remaining, 0, "remaining after another limiter lifted the block");
  await one.reset("key");
  same((await one.peek("key")).remaining, 3, "remaining after reset");
  same((await other.peek("key")).remaining, 2, "another name's remaining after reset");
  await other.refund("key", 1);
  same((await one.peek("key")).remaining, 3, "remaining after another name's refund");
}

async function policyChange(trial: Trial): Promise<void> {
  const window = trial.longMs;
  await trial.limiter({ limit: 10, window }).consume("key", { cost: 4 });
  const changes: [string, LimitOptions, number][] = [
    ["a smaller limit", { limit: 6, window }, 2],
    ["a longer window", { limit: 6, window: 2 * window }, 2],
    ["a fixed window", { algorithm: "fixed-window", limit: 7, window }, 3],
    ["a sliding window", { algorithm: "sliding-window", limit: 9, window }, 5],
    ["a limit below what was used", { limit: 3, window }, 0],
    ["a larger limit", { limit: 20, window }, 16],
  ];
  for (const [title, limit, remaining] of changes) {
    same((await trial.limiter(limit).peek("key")).remaining, remaining, `remaining under ${title}`);
  }
  await exactly(trial.limiter({ limit: 6, window }), "key", 2, "under a smaller limit");
}

/** So many calls are admitted, and that is what `remaining` says before each. */
export async function exactly(
  limiter: Limiter,
  key: string,
  count: number,
  what: string,
): Promise<void> {
  for (let left = count; left > 0; left -= 1) {
    same((await limiter.peek(key)).remaining, left, `remaining ${what}`);
    same((await limiter.consume(key)).allowed, true, `one of ${count} calls ${what}`);
  }
  same((await limiter.consume(key)).allowed, false, `one call more than ${count} ${what}`);
}
