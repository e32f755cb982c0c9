import { type ErrorCode, show, TidegateError } from "./errors.js";
import { type BadPolicy, checkLimits } from "./limit-check.js";
import { checkOptions, countOf, type Duration, isPlainObject } from "./options.js";

/** Which arithmetic a limit uses. "token-bucket" is the leaky bucket under its other name. */
export type Algorithm = "leaky-bucket" | "token-bucket" | "fixed-window" | "sliding-window";

/** One limit. */
export interface LimitOptions {
  /** Names the limit in decisions, headers and metrics. Default "default". Unique within one Limiter. */
  name?: string;
  /** Default "leaky-bucket". */
  algorithm?: Algorithm;
  /** Units admitted per window. A positive safe integer; see the error's text for what is exact. */
  limit: number;
  window: Duration;
  /** Buckets only: the capacity. Default: limit; with `strict` half of it, rounded up. */
  burst?: number;
  /** Buckets only: no window, wherever it starts, ever admits more than `limit` units. */
  strict?: boolean;
}

const KNOWN = ["name", "algorithm", "limit", "window", "burst", "strict"];

/** Validated limits, and the names by which decisions call them. */
export interface Limits {
  /** As the wire and the stores know them. */
  readonly words: string;
  readonly names: readonly string[];
  readonly capacities: ArrayLike<number>;
  /** What they were made from. */
  readonly options: readonly LimitOptions[];
}

/** Checks limits; what it throws names the option and its value. */
export function limitsFrom(given: unknown, code: ErrorCode = "bad_policy"): Limits {
  const list = Array.isArray(given) ? given : [given];
  const plain = list.map((options, at) => {
    const what = list.length === 1 ? 'option "limit"' : `option "limit"[${at}]`;
    checkOptions(options, KNOWN, what, code);
    return { ...(options as Record<string, unknown>) };
  });
  const checked = checkLimits(plain);
  if ("expected" in checked) throw policyError(checked, list, code);
  const names = plain.map((options) => String(options.name ?? "default"));
  return { ...checked, names, options: plain as unknown as LimitOptions[] };
}

function policyError(
  { option, expected, index }: BadPolicy,
  list: readonly unknown[],
  code: ErrorCode,
): TidegateError {
  if (index === undefined) {
    const names = list.map((limit) => show((limit as LimitOptions).name ?? "default")).join(", ");
    const text = `option "${option}" must be ${expected}, but there are ${list.length}: [${names}]`;
    return new TidegateError(code, text);
  }
  const given = list[index];
  const value = isPlainObject(given) ? given[option] : given;
  const place = list.length > 1 ? `limit[${index}].` : "";
  const text = `option "${place}${option}" must be ${expected}, but is ${show(value)}`;
  return new TidegateError(code, text);
}

/**
 * The leaky bucket in its own words: capacity, and units leaked per second.
 *
 * @example
 * new Limiter({ limit: leakyBucket(20, 2.5) }); // 20 at once, 5 more every 2 seconds
 */
export function leakyBucket(capacity: number, leakPerSecond: number, name?: string): LimitOptions {
  const rate = rational(leakPerSecond);
  if (rate === undefined) {
    throw new TidegateError(
      "bad_policy",
      `leakPerSecond must be a positive decimal number of units, but is ${show(leakPerSecond)}`,
    );
  }
  const burst = countOf(capacity, "capacity");
  const options = { limit: rate.units, window: rate.windowMs, burst };
  const limit = name === undefined ? options : { name, ...options };
  limitsFrom(limit);
  return limit;
}

/** A decimal number of units per second as whole units per whole milliseconds, in lowest terms. */
function rational(perSecond: unknown): { units: number; windowMs: number } | undefined {
  if (typeof perSecond !== "number" || !Number.isFinite(perSecond) || perSecond <= 0) return;
  const parts = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(perSecond));
  if (parts === null) return;
  const [, whole = "", fraction = "", exponent = "0"] = parts;
  const power = BigInt(Number(exponent) - fraction.length);
  let units = BigInt(whole + fraction) * (power > 0n ? 10n ** power : 1n);
  let windowMs = 1000n * (power < 0n ? 10n ** -power : 1n);
  const divisor = greatestCommonDivisor(units, windowMs);
  units /= divisor;
  windowMs /= divisor;
  if (units > BigInt(Number.MAX_SAFE_INTEGER) || windowMs > 365n * 86_400_000n) return;
  return { units: Number(units), windowMs: Number(windowMs) };
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
