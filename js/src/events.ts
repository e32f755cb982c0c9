import type { Decision } from "./decision.js";
import type { TidegateError } from "./errors.js";
import { bad } from "./options.js";
import type { Observation } from "./store.js";

/** What a listener is told. */
export type TidegateEvent =
  /** consume and handles' consume; not peek, not tryConsume. */
  | { type: "decision"; key: string; decision: Decision }
  | { type: "duplicate"; id: string }
  | { type: "burst"; identity: string; observation: Observation }
  | { type: "store-error"; error: TidegateError }
  | { type: "evicted"; count: number };

const listeners = new Set<(event: TidegateEvent) => void>();

/**
 * Calls the listener with everything that happens in this process. One that throws, or rejects, changes no decision.
 *
 * @returns the function that ends it.
 */
export function onEvent(listener: (event: TidegateEvent) => void): () => void {
  if (typeof listener !== "function") bad("bad_argument", "listener", listener, "a function");
  // A function of its own, so that the same listener may be added twice and each addition ended.
  const added = (event: TidegateEvent) => listener(event);
  listeners.add(added);
  return () => {
    listeners.delete(added);
  };
}

/** Whether anybody listens: the hot path makes no event for nobody. */
export function isHeard(): boolean {
  return listeners.size > 0;
}

export function emit(event: TidegateEvent): void {
  for (const listener of listeners) {
    // What a listener throws, at once or later, is its own trouble: a decision has been made and stands.
    try {
      const answer: unknown = listener(event);
      if (answer instanceof Promise) answer.catch(() => {});
    } catch {}
  }
}
