import type { TidegateError } from "./errors.js";

/** Who asks a store. */
export type Asker = "limiter" | "deduplicator" | "burst detector" | "Arkos store";

/** Follows one call to an asynchronous store. */
export interface Trace {
  /** The store answered, and its asker is told this. */
  answered(told: unknown): void;
  failed(error: TidegateError): void;
}

let tracer: ((asker: Asker) => Trace) | undefined;

/** Has every call to a store followed from now on; undefined ends that. */
export function traceBy(start: ((asker: Asker) => Trace) | undefined): void {
  tracer = start;
}

/** Nothing where nobody follows calls. */
export function traceOf(asker: Asker): Trace | undefined {
  return tracer?.(asker);
}
