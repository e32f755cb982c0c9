/** Why a call was admitted or denied. */
export type Reason =
  /** Admitted and charged. */
  | "ok"
  /** The budget is used up; retryAfterMs says when this same cost fits. */
  | "limited"
  /** The cost is above capacity: no wait will help; retryAfterMs is Infinity. */
  | "never"
  /** block() is in force; "never" wins over it. */
  | "blocked"
  /** The store failed; `allowed` follows onStoreError. */
  | "store-error"
  /** The store did not answer in time; `allowed` follows onStoreError. */
  | "timeout";

/** What a limiter answers. Times are whole milliseconds. */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: Reason;
  /** Capacity: the most that can be admitted at once. */
  readonly limit: number;
  /** How many cost-1 calls would be admitted right now, after this decision. */
  readonly remaining: number;
  /** The smallest wait after which this same call is admitted, rounded up; 0 when allowed. */
  readonly retryAfterMs: number;
  /** The wait until the budget is whole again (and a block over), rounded up. */
  readonly resetAfterMs: number;
  /** The limit that decided: the one that denied, else the one with least remaining. */
  readonly limitName: string;
  /** True when the decision was made without asking the shared store. */
  readonly local: boolean;
  /** True when `dryRun` let a denied call through. */
  readonly dryRun: boolean;
}

/** In the order of the core's numbers. */
export const REASONS = ["ok", "limited", "never", "blocked"] as const;

/**
 * The decision that the core told in numbers: `numbers` holds which limit decided, its capacity, what
 * remains, the retry wait and the reset wait, from `at` on.
 */
export function decisionFrom(
  reason: number,
  numbers: ArrayLike<number>,
  at: number,
  names: readonly string[],
  local = false,
): Decision {
  return {
    allowed: reason === 0,
    reason: REASONS[reason] as Reason,
    limit: plain(numbers[at + 1] as number),
    remaining: plain(numbers[at + 2] as number),
    retryAfterMs: plain(numbers[at + 3] as number),
    resetAfterMs: plain(numbers[at + 4] as number),
    limitName: names[numbers[at] as number] as string,
    local,
    dryRun: false,
  };
}

/** The engine keeps a small integer in place and any other number in a box of its own. */
function plain(number: number): number {
  const small = number | 0;
  return small === number ? small : number;
}

/** What stands for a decision when the store gave none. */
export function undecided(
  reason: "store-error" | "timeout",
  allowed: boolean,
  retryAfterMs: number,
  limit: number,
  limitName: string,
): Decision {
  return {
    allowed,
    reason,
    limit,
    remaining: 0,
    retryAfterMs: allowed ? 0 : retryAfterMs,
    resetAfterMs: allowed ? 0 : retryAfterMs,
    limitName,
    local: false,
    dryRun: false,
  };
}
