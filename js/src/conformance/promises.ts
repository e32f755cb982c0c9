import { BurstDetector } from "../burst-detector.js";
import { Deduplicator } from "../deduplicator.js";
import { TidegateError } from "../errors.js";
import { Limiter } from "../limiter.js";
import type { LimitOptions } from "../limits.js";
import { refused, same, Unexpected, within } from "./expect.js";
import type { Case, Trial } from "./trial.js";

/** What a store says of itself, and that it is held to it. */
export const promiseCases: readonly Case[] = [
  { name: "the capabilities are told", needs: [], body: capabilitiesAreTold },
  {
    name: "a store that loses races is refused or accepted by name",
    needs: ["best-effort"],
    body: bestEffort,
  },
  {
    name: "a synchronous store answers at once, another one says so",
    needs: ["records"],
    body: synchronous,
  },
  {
    name: "a five-method store refuses what its methods cannot do",
    needs: ["five methods"],
    body: fiveMethods,
  },
  { name: "closing is idempotent, and what is closed says so", needs: [], body: closed },
];

async function capabilitiesAreTold({ store }: Trial): Promise<void> {
  const { atomicity, clock, scope, synchronous, minTtlMs } = store.capabilities;
  oneOf(atomicity, ["exact", "best-effort"], "capabilities.atomicity");
  oneOf(clock, ["store", "caller"], "capabilities.clock");
  oneOf(scope, ["process", "fleet"], "capabilities.scope");
  oneOf(synchronous, [true, false], "capabilities.synchronous");
  same(Number.isInteger(minTtlMs), true, "capabilities.minTtlMs is a whole number");
  within(minTtlMs, 0, Number.MAX_SAFE_INTEGER, "capabilities.minTtlMs");
}

function oneOf(value: unknown, allowed: readonly unknown[], what: string): void {
  if (!allowed.includes(value)) {
    throw new Unexpected(what, `one of ${allowed.map(String).join(", ")}`, value);
  }
}

async function bestEffort(trial: Trial): Promise<void> {
  const { store, prefix, longMs } = trial;
  const limit = { algorithm: "fixed-window", limit: 1, window: longMs } as const;
  const how = "without bestEffort: true";
  await refused(() => new Limiter({ store, prefix, limit }), "unsupported", `a limit ${how}`);
  await refused(
    () => new Deduplicator({ store, prefix, ttl: longMs }),
    "unsupported",
    `ids ${how}`,
  );
  const burst = { store, prefix, threshold: 2, window: longMs };
  await refused(() => new BurstDetector(burst), "unsupported", "a burst detector");
  trial.limiter(limit);
  trial.deduplicator();
}

async function fiveMethods(trial: Trial): Promise<void> {
  const window = trial.longMs;
  const fixed = { algorithm: "fixed-window", limit: 3, window } as const;
  const limits: [string, LimitOptions | LimitOptions[]][] = [
    ["a leaky bucket", { limit: 3, window }],
    ["a sliding window", { algorithm: "sliding-window", limit: 3, window }],
    [
      "two limits",
      [
        { ...fixed, name: "one" },
        { ...fixed, name: "other" },
      ],
    ],
  ];
  for (const [title, limit] of limits)
    await refused(() => trial.limiter(limit), "unsupported", title);
  const limiter = trial.limiter(fixed);
  await refused(() => limiter.consume("key", { cost: 2 }), "unsupported", "a cost of 2");
  for (const call of ["peek", "refund", "unblock"] as const) {
    await refused(() => limiter[call]("key"), "unsupported", call);
  }
  const ids = trial.deduplicator();
  await refused(() => ids.claim("id"), "unsupported", "a claim");
  await refused(
    () => trial.detector({ threshold: 2, window }).observe("identity"),
    "unsupported",
    "an alarm",
  );
}

async function synchronous(trial: Trial): Promise<void> {
  const limiter = trial.limiter({ limit: 3, window: trial.longMs });
  if (!trial.store.capabilities.synchronous) {
    await refused(() => limiter.consumeSync("key"), "sync_unavailable", "consumeSync");
    await refused(() => limiter.handle("key"), "sync_unavailable", "handle");
    return;
  }
  same(limiter.consumeSync("key").remaining, 2, "remaining after consumeSync");
  const handle = limiter.handle("key");
  same(handle.tryConsume(), true, "a handle's second call");
  same(handle.consume().remaining, 0, "remaining after the handle's next call");
  same(handle.tryConsume(), false, "a handle's call above the limit");
  await limiter.reset("key");
  same(handle.tryConsume(3), true, "a handle's call after reset");
  same((await limiter.consume("key")).allowed, false, "consume after a handle took all");
}

async function closed(trial: Trial): Promise<void> {
  const window = trial.longMs;
  const limiter = trial.limiter({ algorithm: "fixed-window", limit: 2, window });
  const ids = trial.deduplicator();
  await limiter.consume("key");
  await ids.first("id");
  for (const one of [limiter, ids, limiter, ids]) await one.close();
  await refused(() => limiter.consume("key"), "closed", "consume on a closed limiter");
  await refused(() => limiter.peek("key"), "closed", "peek on a closed limiter");
  await refused(() => ids.first("id"), "closed", "first on a closed deduplicator");

  const open = trial.limiter({ algorithm: "fixed-window", limit: 2, window });
  await trial.store.close();
  await trial.store.close();
  // Some stores live on, since what they stand for is the caller's; a call must end in any case.
  try {
    await open.consume("key");
  } catch (error) {
    if (error instanceof TidegateError) return;
    throw new Unexpected("a call on a closed store", "an answer or a TidegateError", error);
  }
}
