import { core } from "./core.js";
import { freedBy } from "./wasm/freed.js";

const ACTIONS = ["throw", "allow", "deny", "local"] as const;
const FAILURES = ["store", "timeout"];
const guards = /* @__PURE__ */ freedBy((guard) => core.free_guard(guard));

/** Watches one store for one caller: the core's guard, by its number. */
export class StoreGuard {
  /** What to do instead of an answer. */
  readonly action: (typeof ACTIONS)[number];
  readonly #guard: number;

  constructor(onStoreError: (typeof ACTIONS)[number]) {
    this.action = onStoreError;
    this.#guard = core.guard(ACTIONS.indexOf(onStoreError));
    guards.register(this, this.#guard);
  }

  /** Whether to ask the store now. */
  ask(now: number): boolean {
    return core.guard_ask(this.#guard, now) === 1;
  }

  /** How long the store is left alone from now on. */
  closedForMs(now: number): number {
    return core.guard_closed_for(this.#guard, now);
  }

  /** The store answered. */
  answered(): void {
    core.guard_answered(this.#guard);
  }

  /** The call failed with an error of that code. */
  failed(code: string, now: number): void {
    const failure = FAILURES.indexOf(code);
    core.guard_failed(this.#guard, failure < 0 ? FAILURES.length : failure, now);
  }

  /** When asking again may help. */
  retryAfterMs(now: number): number {
    return core.guard_retry_after(this.#guard, now);
  }
}
