/** What went wrong, as a stable word to branch on. */
export type ErrorCode =
  | "bad_policy"
  | "bad_argument"
  | "store"
  | "timeout"
  | "contention"
  | "corrupt_state"
  | "unsupported"
  | "mismatch"
  | "sync_unavailable"
  | "closed";

/** Every error this package throws. A denial is never one: it is a decision. */
export class TidegateError extends Error {
  readonly code: ErrorCode;
  /** The host's own error object, where there is one. */
  override readonly cause?: unknown;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message);
    this.name = "TidegateError";
    this.code = code;
    if (options !== undefined && "cause" in options) this.cause = options.cause;
  }
}

export function storeFull(): TidegateError {
  const why = "the store is full: every key that it may hold is in use";
  return new TidegateError("store", why);
}

export function limiterClosed(): TidegateError {
  return new TidegateError("closed", "the limiter is closed");
}

/** The error of whatever was thrown on the way to an answer. */
export function errorFrom(thrown: unknown): TidegateError {
  if (thrown instanceof TidegateError) return thrown;
  return new TidegateError("store", `the store failed: ${show(thrown)}`, { cause: thrown });
}

const THE_CALLERS = new Set<ErrorCode>([
  "bad_argument",
  "bad_policy",
  "unsupported",
  "closed",
  "sync_unavailable",
]);

/** Whether an error says something about the call or its maker: no policy turns it into a decision. */
export function isCallers(thrown: unknown): boolean {
  return THE_CALLERS.has(errorFrom(thrown).code);
}

/** A value as an error message shows it: short, and never by running its own code. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return "a symbol";
    case "function":
      return "a function";
    case "object":
      if (value === null) return "null";
      if (value instanceof Error) return `${value.name}: ${value.message}`;
      return Array.isArray(value) ? "an array" : "an object";
    default:
      return String(value);
  }
}
