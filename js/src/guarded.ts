import { StoreGuard } from "#wasm";
import { errorFrom, TidegateError } from "./errors.js";
import { emit } from "./events.js";
import { countStoreError } from "./metrics.js";

/** What to do in place of an answer that the store did not give. */
export interface Failed {
  readonly error: TidegateError;
  readonly action: "throw" | "allow" | "deny" | "local";
  readonly retryAfterMs: number;
}

/** An answer of the store, or what to do without one. */
export type Outcome<T> =
  | { readonly value: T; readonly failed?: never }
  | { readonly failed: Failed; readonly value?: never };

/** Errors that say something about the call or its maker: no policy turns them into a decision. */
const THE_CALLERS = new Set([
  "bad_argument",
  "bad_policy",
  "unsupported",
  "closed",
  "sync_unavailable",
]);

/**
 * Puts a deadline on calls to an asynchronous store, and leaves one alone that keeps failing. A store that is
 * synchronous has answered when the call returns; where it fails for want of room, that is the call's error.
 */
export class Guarded {
  readonly #guard: StoreGuard;
  readonly #timeoutMs: number;
  readonly #synchronous: boolean;
  #last = new TidegateError("store", "the store failed");

  constructor(onStoreError: Failed["action"], timeoutMs: number, synchronous: boolean) {
    this.#guard = new StoreGuard(onStoreError);
    this.#timeoutMs = timeoutMs;
    this.#synchronous = synchronous;
  }

  /** Asks the store, and answers what it answered in time, or what its failure means. */
  async ask<T>(call: () => T | Promise<T>): Promise<Outcome<T>> {
    if (this.#synchronous) return { value: atOnce(call as () => T) };
    if (!this.#guard.ask(performance.now())) return { failed: this.#without(this.#last) };
    try {
      const value = await this.#inTime(call);
      this.#guard.answered();
      return { value };
    } catch (thrown) {
      const error = errorFrom(thrown);
      if (THE_CALLERS.has(error.code)) throw error;
      this.#guard.failed(error.code, performance.now());
      this.#last = error;
      return { failed: this.#without(error) };
    }
  }

  /** As `ask`, for a call whose failure nothing can stand in for. */
  async must<T>(call: () => T | Promise<T>): Promise<T> {
    const { value, failed } = await this.ask(call);
    if (failed !== undefined) throw failed.error;
    return value;
  }

  #without(error: TidegateError): Failed {
    tell(error);
    const action = this.#guard.action() as Failed["action"];
    return { error, action, retryAfterMs: this.#guard.retry_after_ms(performance.now()) };
  }

  #inTime<T>(call: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(
          new TidegateError("timeout", `the store did not answer within ${this.#timeoutMs} ms`),
        );
      const timer = setTimeout(late, this.#timeoutMs);
      // What settles after the deadline finds the promise settled, and changes nothing.
      new Promise<T>((started) => started(call()))
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }
}

/** Asks a synchronous store, whose failure no policy stands in for. */
function atOnce<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    const error = errorFrom(thrown);
    if (!THE_CALLERS.has(error.code)) tell(error);
    throw error;
  }
}

function tell(error: TidegateError): void {
  countStoreError(error.code);
  emit({ type: "store-error", error });
}
