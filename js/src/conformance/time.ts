import type { Limiter } from "../limiter.js";
import { fields, same, Unexpected, within } from "./expect.js";
import { ALGORITHMS, CAPACITY, exactly } from "./limits.js";
import { fresh } from "./messages.js";
import { type Case, type Need, pause, type Trial } from "./trial.js";

/** With a clock that can be moved, every wait is exact. */
const MOVED: readonly Need[] = ["records", "advance"];
/** Without one, a case waits for real time once, for less than a second. */
const WAITED: readonly Need[] = ["records", "wait"];
const EXACT: readonly Need[] = ["exact"];

export const timeCases: readonly Case[] = [
  ...ALGORITHMS.map(({ title, limit }) => ({
    name: `${title}: retryAfterMs and resetAfterMs are exact`,
    needs: MOVED,
    body: (trial: Trial) => exactWaits(trial, limit),
  })),
  { name: "a block is over when it says", needs: MOVED, body: blockEnds },
  { name: "an id is remembered for its ttl", needs: MOVED, body: idsExpire },
  {
    name: "a lease runs out when it says, and its token is worth nothing then",
    needs: MOVED,
    body: leaseEnds,
  },
  { name: "a lease that nobody took can still be committed", needs: MOVED, body: lateCommit },
  {
    name: "each window that reaches the threshold fires once",
    needs: [...MOVED, ...EXACT],
    body: windows,
  },
  { name: "a cooldown holds across windows", needs: [...MOVED, ...EXACT], body: cooldown },
  { name: "a write makes a record live as long as what it holds", needs: MOVED, body: livesLonger },
  { name: "nothing stays for ever", needs: [...MOVED, "size"], body: nothingStays },
  ...ALGORITHMS.map(({ title, limit }) => ({
    name: `${title}: a call is admitted after retryAfterMs`,
    needs: WAITED,
    body: (trial: Trial) => waits(trial, limit),
  })),
  {
    name: "a block, a lease and an id end, and what was written later lives on",
    needs: WAITED,
    body: waitsForAll,
  },
];

// ── with a clock that can be moved ──────────────────────────────────────

/** Leaves a wait of one millisecond, or of half a second where the clock also runs by itself. */
const RUNNING_MS = 500;

/** Whether the clock stands still unless it is moved. */
async function standsStill(limiter: Limiter): Promise<boolean> {
  await limiter.consume("clock", { cost: CAPACITY });
  const before = await limiter.peek("clock");
  await pause(5);
  return (await limiter.peek("clock")).retryAfterMs === before.retryAfterMs;
}

async function exactWaits(
  trial: Trial,
  limit: (typeof ALGORITHMS)[number]["limit"],
): Promise<void> {
  // A prime number of milliseconds, so that waits do not come out whole.
  const limiter = trial.limiter({ ...limit, window: trial.atLeast(10_007) });
  const marginMs = (await standsStill(limiter)) ? 1 : RUNNING_MS;
  for (const cost of [1, 2, CAPACITY]) {
    for (let used = 0; used < CAPACITY; used += 1) await limiter.consume("key");
    const denied = await limiter.consume("key", { cost });
    fields(denied, { allowed: false, reason: "limited" }, `a cost of ${cost} above the limit`);
    await trial.advance(denied.retryAfterMs - marginMs);
    const early = await limiter.consume("key", { cost });
    const title = `a cost of ${cost}`;
    if (early.allowed) throw new Unexpected(`${title}, too early`, "a denial", early);
    if (marginMs === 1) same(early.retryAfterMs, 1, `retryAfterMs of ${title}, 1 ms early`);
    await trial.advance(early.retryAfterMs);
    same((await limiter.consume("key", { cost })).allowed, true, `${title} after retryAfterMs`);
  }
  const { resetAfterMs } = await limiter.peek("key");
  await trial.advance(resetAfterMs - marginMs);
  const almost = await limiter.peek("key");
  within(almost.resetAfterMs, 1, marginMs, "resetAfterMs just before the budget is whole");
  await trial.advance(almost.resetAfterMs);
  const whole = { remaining: CAPACITY, resetAfterMs: 0 };
  fields(await limiter.peek("key"), whole, "peek after resetAfterMs");
  await exactly(limiter, "key", CAPACITY, "after resetAfterMs");
}

async function blockEnds(trial: Trial): Promise<void> {
  const limiter = trial.limiter({ limit: CAPACITY, window: trial.longMs });
  const marginMs = (await standsStill(limiter)) ? 1 : RUNNING_MS;
  const durationMs = trial.atLeast(30_000);
  await limiter.block("key", durationMs);
  await trial.advance(durationMs - marginMs);
  const almost = await limiter.consume("key");
  same(almost.reason, "blocked", "the reason just before the block is over");
  within(almost.retryAfterMs, 1, marginMs, "retryAfterMs just before the block is over");
  await trial.advance(almost.retryAfterMs);
  same((await limiter.consume("key")).allowed, true, "a call when the block is over");
}

async function idsExpire(trial: Trial): Promise<void> {
  const ttl = trial.atLeast(20_000);
  const ids = trial.deduplicator({ ttl });
  await ids.first("seen");
  await (await fresh(ids, "done", "a claim")).commit("result");
  await trial.advance(ttl - RUNNING_MS);
  same(await ids.first("seen"), false, "first before the ttl is over");
  same(await ids.has("done"), true, "has before the ttl is over");
  await trial.advance(RUNNING_MS);
  same(await ids.has("seen"), false, "has after the ttl");
  same(await ids.first("seen"), true, "first after the ttl");
  await fresh(ids, "done", "a claim after the ttl");
}

async function leaseEnds(trial: Trial): Promise<void> {
  const lease = trial.atLeast(20_000);
  const ids = trial.deduplicator({ lease });
  const slow = await fresh(ids, "id", "the first claim");
  await trial.advance(lease - RUNNING_MS);
  const waiting = await ids.claim("id");
  if (waiting.status !== "in-progress") {
    throw new Unexpected("a claim before the lease is over", '"in-progress"', waiting);
  }
  await trial.advance(waiting.retryAfterMs);
  const next = await fresh(ids, "id", "a claim when the lease is over");
  same(await slow.commit("late"), false, "the commit of whom the lease was taken from");
  same(await slow.release(), false, "the release of whom the lease was taken from");
  same((await ids.claim("id")).status, "in-progress", "the status after they tried");
  same(await next.commit("done"), true, "the commit of who holds the lease");
  same(await slow.commit("later"), false, "a commit after somebody else's");
  same(await ids.claim("id"), { status: "duplicate", result: "done" }, "a claim after that");
}

async function lateCommit(trial: Trial): Promise<void> {
  const lease = trial.atLeast(20_000);
  const ids = trial.deduplicator({ lease });
  const slow = await fresh(ids, "id", "a claim");
  await trial.advance(lease + 1_000);
  same(await slow.commit("late"), true, "a commit past the lease, when nobody took it");
  same(await ids.claim("id"), { status: "duplicate", result: "late" }, "a claim after that");
}

async function windows(trial: Trial): Promise<void> {
  const window = trial.atLeast(60_000);
  const detector = trial.detector({ threshold: 2, window });
  const { windowEndsInMs } = await detector.observe("clock");
  await trial.advance(windowEndsInMs);
  for (const title of ["the first window", "the second window", "the third window"]) {
    fields(await detector.observe("one"), { count: 1, fired: false }, title);
    fields(await detector.observe("one"), { count: 2, fired: true }, title);
    const last = await detector.observe("one");
    fields(last, { count: 3, fired: false }, title);
    await trial.advance(last.windowEndsInMs);
  }
  fields(await detector.observe("one"), { count: 1, fired: false }, "the fourth window");
}

async function cooldown(trial: Trial): Promise<void> {
  const window = trial.atLeast(60_000);
  const detector = trial.detector({ threshold: 2, window, cooldown: 2.5 * window });
  const { windowEndsInMs } = await detector.observe("clock");
  await trial.advance(windowEndsInMs);
  const fired: boolean[] = [];
  for (let at = 0; at < 5; at += 1) {
    const observation = await detector.observe("one", { weight: 2 });
    fired.push(observation.fired);
    await trial.advance(observation.windowEndsInMs);
  }
  same(fired, [true, false, false, true, false], "which of five windows fire");
}

/** A record that is written again has to live as long as the last write says, not as the first. */
async function livesLonger(trial: Trial): Promise<void> {
  const shortMs = trial.atLeast(5_000);
  const longMs = 100 * shortMs;
  const limiter = trial.limiter({ algorithm: "fixed-window", limit: 1, window: shortMs });
  await limiter.consume("key");
  await limiter.block("key", longMs);
  const ids = trial.deduplicator({ lease: shortMs, ttl: longMs });
  await (await fresh(ids, "id", "a claim")).commit("result");
  await trial.advance(longMs - shortMs / 2);
  same((await limiter.consume("key")).reason, "blocked", "the reason after the first window");
  same(await ids.has("id"), true, "has after the lease");
}

async function nothingStays(trial: Trial): Promise<void> {
  const window = trial.atLeast(10_000);
  const before = (await trial.options.size?.()) ?? 0;
  const limiter = trial.limiter({ limit: CAPACITY, window });
  const ids = trial.deduplicator({ ttl: window, lease: window });
  for (const key of ["a", "b", "c"]) {
    await limiter.consume(key, { cost: 2 });
    await limiter.block(key, window);
    await limiter.refund(key, 1);
    await ids.first(`${key} seen`);
    await ids.claim(`${key} claimed`);
    await (await fresh(ids, `${key} done`, "a claim")).commit("result");
    if (trial.exact) await trial.detector({ threshold: 2, window }).observe(key);
  }
  await limiter.unblock("a");
  await limiter.reset("b");
  await ids.forget("b done");
  await trial.advance(10 * window);
  const after = (await trial.options.size?.()) ?? 0;
  within(after, 0, before, "how many records are left when all of them are over");
}

// ── without ─────────────────────────────────────────────────────────────

/**
 * Waits as long as the decision says. How much time the store itself took is not known here, so an early
 * admission is only wrong where that time has not passed on this side either.
 */
async function waits(trial: Trial, limit: (typeof ALGORITHMS)[number]["limit"]): Promise<void> {
  const limiter = trial.limiter({ ...limit, window: 400 });
  const start = performance.now();
  let decision = await limiter.consume("key", { cost: CAPACITY });
  same(decision.allowed, true, "a cost of the whole capacity");
  decision = await limiter.consume("key");
  const tookMs = performance.now() - start;
  if (decision.allowed) {
    within(tookMs, 1, Number.POSITIVE_INFINITY, "the time before an admission above the limit");
    return;
  }
  within(decision.retryAfterMs, 1, 800, "retryAfterMs");
  await pause(decision.retryAfterMs);
  same((await limiter.consume("key")).allowed, true, "a call after retryAfterMs");
}

/** One wait for all that ends. What is short ends in it; what was written to the same records later does not. */
async function waitsForAll(trial: Trial): Promise<void> {
  const shortMs = 400;
  const limiter = trial.limiter({ algorithm: "fixed-window", limit: 1, window: shortMs });
  const ids = trial.deduplicator({ ttl: shortMs, lease: shortMs });
  const longer = trial.deduplicator({ ttl: trial.longMs, lease: shortMs });
  await limiter.block("short", shortMs);
  await limiter.consume("long");
  await limiter.block("long", trial.longMs);
  await ids.first("seen");
  const slow = await fresh(ids, "claimed", "a claim");
  const late = await fresh(ids, "late", "a claim");
  await (await fresh(longer, "kept", "a claim")).commit("result");

  await pause(shortMs + 50);
  same((await limiter.consume("short")).allowed, true, "a call when the block is over");
  same((await limiter.consume("long")).reason, "blocked", "the reason after a longer block");
  same(await ids.first("seen"), true, "first after the ttl");
  same(await longer.has("kept"), true, "has of an id with a longer ttl");
  const next = await fresh(longer, "claimed", "a claim when the lease is over");
  same(await slow.commit("lost"), false, "the commit of whom the lease was taken from");
  same(await next.commit("done"), true, "the commit of who holds the lease");
  same(await late.commit("late"), true, "a commit past the lease, when nobody took it");
}
