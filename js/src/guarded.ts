import { Deadlines, type Tick } from "./deadlines.js";
import { errorFrom, isCallers, TidegateError } from "./errors.js";
import { emit } from "./events.js";
import { countStoreError } from "./metrics.js";
import { type Answer, type Waiter, whenAnswered } from "./pending.js";
import { StoreGuard } from "./store-guard.js";
import { type Asker, type Trace, traceOf } from "./tracing.js";

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

/**
 * Puts a deadline on calls to an asynchronous store, and leaves one alone that keeps failing. A store that is
 * synchronous has answered when the call returns; where it fails for want of room, that is the call's error.
 */
export class Guarded {
  readonly asker: Asker;
  readonly #guard: StoreGuard;
  readonly #deadlines: Deadlines;
  readonly #timeoutMs: number;
  readonly #synchronous: boolean;
  /** Nothing has failed since the store last answered: the guard lets everything through. */
  #isCalm = true;
  #last = new TidegateError("store", "the store failed");
  #lastThrown: unknown;

  constructor(
    asker: Asker,
    onStoreError: Failed["action"],
    timeoutMs: number,
    synchronous: boolean,
  ) {
    this.asker = asker;
    this.#guard = new StoreGuard(onStoreError);
    this.#deadlines = new Deadlines(timeoutMs);
    this.#timeoutMs = timeoutMs;
    this.#synchronous = synchronous;
  }

  /** Asks the store; answers what `told` makes of what it answered in time, or `without` of its failure. */
  ask<T, R>(
    call: () => Answer<T>,
    told: (value: T) => R,
    without: (failed: Failed) => R,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      if (this.#synchronous) {
        resolve(told(atOnce(call as () => T)));
      } else if (!this.#isCalm && !this.#guard.ask(performance.now())) {
        resolve(without(this.#without(this.#last)));
      } else {
        new Asked(this, this.#deadlines, told, without, resolve, reject).by(call);
      }
    });
  }

  /** As `ask`, for a call whose failure nothing can stand in for. */
  must<T>(call: () => Answer<T>): Promise<T> {
    return this.ask(call, (value) => value, rethrow);
  }

  /** Asks a synchronous store, and answers what it answered. */
  now<T>(call: () => T): T {
    return atOnce(call);
  }

  /** The store answered a call. */
  answered(): void {
    if (this.#isCalm) return;
    this.#guard.answered();
    this.#isCalm = true;
  }

  /** The store failed a call: what that means. Throws what is the caller's own error. */
  failed(thrown: unknown): Failed {
    const error = errorFrom(thrown);
    // All of a batch fail by one error, which is one failure of the store.
    if (thrown !== this.#lastThrown) this.#guard.failed(error.code, performance.now());
    this.#lastThrown = thrown;
    if (isCallers(error)) throw error;
    this.#isCalm = false;
    this.#last = error;
    return this.#without(error);
  }

  /** The store did not answer a call in time. */
  late(): TidegateError {
    return new TidegateError("timeout", `the store did not answer within ${this.#timeoutMs} ms`);
  }

  #without(error: TidegateError): Failed {
    tellStoreError(error);
    const action = this.#guard.action;
    return { error, action, retryAfterMs: this.#guard.retryAfterMs(performance.now()) };
  }
}

/** One call under way. What comes after its deadline finds it settled, and changes nothing. */
class Asked<T, R> implements Waiter<T> {
  readonly #guarded: Guarded;
  readonly #told: (value: T) => R;
  readonly #without: (failed: Failed) => R;
  readonly #resolve: (value: R) => void;
  readonly #reject: (error: unknown) => void;
  readonly #deadline: Tick;
  readonly #trace: Trace | undefined;
  #isOpen = true;

  constructor(
    guarded: Guarded,
    deadlines: Deadlines,
    told: (value: T) => R,
    without: (failed: Failed) => R,
    resolve: (value: R) => void,
    reject: (error: unknown) => void,
  ) {
    this.#guarded = guarded;
    this.#told = told;
    this.#without = without;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = deadlines.add(this);
    this.#trace = traceOf(guarded.asker);
  }

  by(call: () => Answer<T>): void {
    try {
      whenAnswered(call(), this);
    } catch (error) {
      this.failed(error);
    }
  }

  answered(value: T): void {
    if (!this.#close()) return;
    try {
      this.#guarded.answered();
      const told = this.#told(value);
      this.#trace?.answered(told);
      this.#resolve(told);
    } catch (error) {
      this.#reject(error);
    }
  }

  /** Known without the store, about which this says nothing. */
  known(value: T): void {
    if (!this.#close()) return;
    try {
      this.#resolve(this.#told(value));
    } catch (error) {
      this.#reject(error);
    }
  }

  failed(thrown: unknown): void {
    if (!this.#close()) return;
    this.#trace?.failed(errorFrom(thrown));
    try {
      this.#resolve(this.#without(this.#guarded.failed(thrown)));
    } catch (error) {
      this.#reject(error);
    }
  }

  late(): void {
    if (this.#isOpen) this.failed(this.#guarded.late());
  }

  /** False when the call is settled already. */
  #close(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#deadline.met();
    return true;
  }
}

/** For a call whose failure nothing can stand in for. */
export function rethrow({ error }: Failed): never {
  throw error;
}

/** Asks a synchronous store, whose failure no policy stands in for. */
function atOnce<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    const error = errorFrom(thrown);
    if (!isCallers(error)) tellStoreError(error);
    throw error;
  }
}

/** A failure of a store is never silent. */
export function tellStoreError(error: TidegateError): void {
  countStoreError(error.code);
  emit({ type: "store-error", error });
}
