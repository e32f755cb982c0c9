import { show, TidegateError } from "../errors.js";
import { bad } from "../options.js";

/** The store interface of the Arkos gateway. `ttl` is in seconds, `windowMs` in milliseconds. */
export interface ArkosGatewayStore {
  /** Counts a hit in the key's fixed window; `resetAt` is when that ends, in milliseconds since the epoch. */
  increment(key: string, windowMs: number): Promise<{ count: number; resetAt: number }>;
  /** Forgets what is under the keys that begin with the prefix. */
  clear(prefix: string): Promise<void>;
  /** Whether the key was set and its time has not run out. */
  has(key: string): Promise<boolean>;
  /** Sets the key for that long from now, whether it was set or not. */
  set(key: string, ttl: number): Promise<void>;
  /** Sets the key unless it is set; true for exactly one of several callers. */
  setIfNotExists(key: string, ttl: number): Promise<boolean>;
}

/** The methods of an ArkosGatewayStore. */
export const ARKOS_METHODS = ["increment", "clear", "has", "set", "setIfNotExists"] as const;

/** What `increment` answered, if that can be. */
export function checkCounted(answer: unknown): { count: number; resetAt: number } {
  const { count, resetAt } = (answer ?? {}) as { count?: unknown; resetAt?: unknown };
  if (!Number.isSafeInteger(count) || (count as number) < 1) {
    throw wrongAnswer("increment", "a count that is a positive integer", count);
  }
  if (typeof resetAt !== "number" || !Number.isFinite(resetAt)) {
    throw wrongAnswer("increment", "a resetAt in milliseconds", resetAt);
  }
  return { count: count as number, resetAt };
}

/** What `has` or `setIfNotExists` answered, if that can be. */
export function checkFlag(method: string, answer: unknown): boolean {
  if (typeof answer === "boolean") return answer;
  throw wrongAnswer(method, "true or false", answer);
}

export function wrongAnswer(method: string, expected: string, answer: unknown): TidegateError {
  const text = `the store's ${method}() must answer ${expected}, but answered ${show(answer)}`;
  return new TidegateError("store", text);
}

const MAX_SPAN_MS = 365 * 86_400_000;

/** A window in whole milliseconds; a part of one counts as one. */
export function windowOf(windowMs: unknown): number {
  return spanMs(windowMs, 1, "windowMs", "milliseconds");
}

/** A time to live, given in seconds, in whole milliseconds. */
export function ttlMsOf(ttl: unknown): number {
  return spanMs(ttl, 1_000, "ttl", "seconds");
}

function spanMs(value: unknown, unitMs: number, name: string, unit: string): number {
  // Micro-units first: 1.1 seconds are 1100 ms, and not the 1100.0000000000002 that floats make of them.
  const ms = typeof value === "number" ? Math.ceil(Math.round(value * unitMs * 1_000) / 1_000) : 0;
  if (ms >= 1 && ms <= MAX_SPAN_MS) return ms;
  bad("bad_argument", name, value, `a positive number of ${unit}, at most 365 days`);
}
