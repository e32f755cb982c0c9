import { countOf, oneOf, prefixOf } from "../options.js";
import type { Capabilities } from "../store.js";
import { Batches, type BatchesOptions } from "./batches.js";
import type { RunScript } from "./client.js";
import { RedisDriver } from "./driver.js";
import { step } from "./gen/script.js";

/** What every store takes that runs our script on a server. */
export interface ScriptStoreOptions {
  /** Namespaces everything in the store, before the prefixes of its users. Default: none. */
  prefix?: string;
  /** The most operations that travel in one call. Default 64, at most 1 000. */
  maxBatch?: number;
  /** "caller" is for servers that refuse TIME inside scripts. Default "store". */
  clock?: "store" | "caller";
}

export const SCRIPT_STORE_OPTIONS = ["prefix", "maxBatch", "clock"] as const;

const DEFAULT_MAX_BATCH = 64;
const MOST_MAX_BATCH = 1_000;

/** What such a store promises, and its driver. */
export function scriptStore(
  run: RunScript,
  options: ScriptStoreOptions,
  batches: BatchesOptions,
): { capabilities: Capabilities; driver: RedisDriver } {
  const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
  const maxBatch =
    options.maxBatch === undefined
      ? DEFAULT_MAX_BATCH
      : countOf(options.maxBatch, "maxBatch", MOST_MAX_BATCH);
  const clock = oneOf(options.clock, "clock", ["store", "caller"], "store");
  const now = clock === "caller" ? () => String(Date.now()) : () => "";
  const send = (keys: string[], ops: string[]) => run(step, keys, [now(), ...ops]);
  const capabilities = Object.freeze({
    atomicity: "exact",
    clock,
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1,
  } as const);
  return { capabilities, driver: new RedisDriver(new Batches(send, maxBatch, batches), prefix) };
}
