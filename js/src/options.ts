import { millisecondsOf } from "./core.js";
import { type ErrorCode, show, TidegateError } from "./errors.js";

/**
 * 250, "250ms", "10s", "10 s", "1.5s", "5m", "1h", "7d": a whole number of milliseconds from 1 to 365 days.
 */
export type Duration = number | string;

const MAX_DURATION_MS = 365 * 86_400_000;
/** The longest that a timer of JavaScript can be set to. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export function bad(code: ErrorCode, name: string, value: unknown, expected: string): never {
  throw new TidegateError(code, `${name} must be ${expected}, but is ${show(value)}`);
}

/** Any object that is only a bag of options. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Checks that a plain object was given with none but these options. */
export function checkOptions(
  options: unknown,
  known: readonly string[],
  what = "options",
  code: ErrorCode = "bad_policy",
): void {
  if (!isPlainObject(options)) bad(code, what, options, "a plain object");
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new TidegateError(
        code,
        `unknown option ${show(name)} in ${what}; known are ${known.join(", ")}`,
      );
    }
  }
}

/** Milliseconds of a duration. */
export function durationMs(
  value: unknown,
  name: string,
  code: ErrorCode = "bad_policy",
  most = MAX_DURATION_MS,
): number {
  const ms = typeof value === "string" ? millisecondsOf(value) : value;
  if (typeof ms === "number" && Number.isInteger(ms) && ms >= 1 && ms <= most) return ms;
  const span = most === MAX_DURATION_MS ? "365 days" : `${most} ms`;
  bad(
    code,
    name,
    value,
    `a whole number of milliseconds from 1 to ${span}, or text such as "250ms", "10s", "5m", "1h", "7d"`,
  );
}

export function timeoutMs(value: unknown, fallback: number): number {
  return value === undefined
    ? fallback
    : durationMs(value, 'option "timeout"', "bad_policy", MAX_TIMEOUT_MS);
}

export function oneOf<T extends string>(
  value: unknown,
  name: string,
  allowed: readonly T[],
  fallback: T,
): T {
  if (value === undefined) return fallback;
  if (allowed.includes(value as T)) return value as T;
  bad(
    "bad_policy",
    `option "${name}"`,
    value,
    allowed.map((one) => JSON.stringify(one)).join(" or "),
  );
}

export function flag(value: unknown, name: string): boolean {
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  bad("bad_policy", `option "${name}"`, value, "true or false");
}

export function functionOf<F extends ((...args: any[]) => unknown) | undefined>(
  value: F,
  name: string,
): F {
  if (value === undefined || typeof value === "function") return value;
  bad("bad_policy", `option "${name}"`, value, "a function");
}

export function prefixOf(value: unknown, fallback = "tg"): string {
  if (value === undefined) return fallback;
  if (typeof value === "string" && value !== "") return value;
  bad("bad_policy", 'option "prefix"', value, "a non-empty string");
}

/** A positive safe integer of an option. */
export function countOf(value: unknown, name: string, most = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most) {
    return value as number;
  }
  const range =
    most === Number.MAX_SAFE_INTEGER ? "a positive safe integer" : `an integer from 1 to ${most}`;
  bad("bad_policy", `option "${name}"`, value, range);
}

/** A key or an id as a caller gives it. */
export function checkKey(key: unknown, name: string): asserts key is string {
  if (typeof key !== "string" || key === "") bad("bad_argument", name, key, "a non-empty string");
}

/** Units of a call: a positive safe integer. */
export function checkCost(cost: unknown, name = "cost"): asserts cost is number {
  if (!Number.isSafeInteger(cost) || (cost as number) < 1) {
    bad("bad_argument", name, cost, "a positive safe integer");
  }
}

/** The cost in the options of a call. */
export function costOf(options: unknown): number {
  if (options === undefined) return 1;
  if (!isPlainObject(options)) bad("bad_argument", "options", options, "a plain object");
  for (const name of Object.keys(options)) {
    if (name !== "cost") bad("bad_argument", "options", name, 'only { "cost" }');
  }
  const cost = options.cost;
  if (cost === undefined) return 1;
  checkCost(cost);
  return cost;
}

/** UTF-8; where that would lose unpaired surrogates, their JSON behind a byte that no UTF-8 holds. */
export function textBytes(text: string): Uint8Array {
  const encode = (plain: string) => new TextEncoder().encode(plain);
  if (!/\p{Surrogate}/u.test(text)) return encode(text);
  return Uint8Array.of(0xff, ...encode(JSON.stringify(text)));
}
