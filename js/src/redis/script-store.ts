import { countOf, oneOf, prefixOf } from "../options.js";
import type { Capabilities } from "../store.js";
import { Batches, type BatchesOptions } from "../wire/batches.js";
import { exactFleet } from "../wire/capabilities.js";
import type { Asked } from "../wire/operation.js";
import type { RunScript } from "./client.js";
import { step } from "./gen/script.js";
import { runsOf } from "./runs.js";

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
/** Servers refuse what is too large, and all that travels with it. */
const MOST_LENGTH = 512 * 1024;

/** What such a store promises, and what its driver is made of. */
export function scriptStore(
  run: RunScript,
  options: ScriptStoreOptions,
  batches: BatchesOptions,
): { capabilities: Capabilities; batches: Batches; prefix: string | undefined } {
  const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
  const maxBatch =
    options.maxBatch === undefined
      ? DEFAULT_MAX_BATCH
      : countOf(options.maxBatch, "maxBatch", MOST_MAX_BATCH);
  const clock = oneOf(options.clock, "clock", ["store", "caller"], "store");
  const now = clock === "caller" ? () => String(Date.now()) : () => "";
  const send = (batch: readonly Asked[]) => {
    const keys = batch.map(({ key }) => key);
    return run(step, keys, [now(), ...runsOf(batch)]);
  };
  const most = { operations: maxBatch, length: MOST_LENGTH };
  return { capabilities: exactFleet(clock), batches: new Batches(send, most, batches), prefix };
}
