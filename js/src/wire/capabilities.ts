import type { Capabilities } from "../store.js";

/** What stores promise whose steps run where the records are. */
export function exactFleet(clock: Capabilities["clock"]): Capabilities {
  return Object.freeze({
    atomicity: "exact",
    clock,
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1,
  } as const);
}
