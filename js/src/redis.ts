import { checkOptions, countOf, flag, oneOf, prefixOf } from "./options.js";
import { Batches } from "./redis/batches.js";
import { type ScriptAdapter, scriptRunner } from "./redis/client.js";
import { RedisDriver } from "./redis/driver.js";
import { step } from "./redis/gen/script.js";
import { Grouping } from "./redis/grouping.js";
import { type Capabilities, DRIVER, type Store } from "./store.js";

export type { ScriptAdapter };

export interface RedisStoreOptions {
  /** Namespaces everything in the store, before the prefixes of its users. Default: none. */
  prefix?: string;
  /** The most operations that travel in one call. Default 64. */
  maxBatch?: number;
  /** "caller" is for servers that refuse TIME inside scripts. Default "store". */
  clock?: "store" | "caller";
  /** Whether keys are spread over slots. Default: asked of the server once. */
  cluster?: boolean;
}

const DEFAULT_MAX_BATCH = 64;
const MOST_MAX_BATCH = 1_000;

/**
 * Redis or Valkey: exact over the fleet, one round trip for all decisions of a tick, on the server's clock.
 *
 * A script whose reply was lost may have run, so it is never sent again: its decisions follow `onStoreError`. Only
 * node-redis over Sentinel has to be told so, with `maxCommandRediscovers: 0`.
 *
 * @example
 * const store = new RedisStore(new Redis()); // ioredis; or iovalkey, node-redis, GLIDE, a ScriptAdapter
 * const limiter = new Limiter({ limit: { limit: 100, window: "1m" }, store, onStoreError: "local" });
 */
export class RedisStore implements Store {
  readonly capabilities: Capabilities;
  readonly [DRIVER]: RedisDriver;

  constructor(client: unknown, options: RedisStoreOptions = {}) {
    checkOptions(options, ["prefix", "maxBatch", "clock", "cluster"]);
    const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
    const maxBatch =
      options.maxBatch === undefined
        ? DEFAULT_MAX_BATCH
        : countOf(options.maxBatch, "maxBatch", MOST_MAX_BATCH);
    const clock = oneOf(options.clock, "clock", ["store", "caller"], "store");
    const told = options.cluster === undefined ? undefined : flag(options.cluster, "cluster");
    const run = scriptRunner(client);
    // A ScriptAdapter counts as a single server unless its user says otherwise.
    const adapter = typeof (client as ScriptAdapter).evalScript === "function";
    this.capabilities = Object.freeze({
      atomicity: "exact",
      clock,
      scope: "fleet",
      synchronous: false,
      minTtlMs: 1,
    });
    const now = clock === "caller" ? () => String(Date.now()) : () => "";
    const send = (keys: string[], ops: string[]) => run(step, keys, [now(), ...ops]);
    const grouping = new Grouping(run, told ?? (adapter ? false : undefined));
    const batches = new Batches(send, maxBatch, (key) => grouping.of(key));
    this[DRIVER] = new RedisDriver(batches, prefix);
  }

  /** The client is the caller's, and stays open. */
  async close(): Promise<void> {}
}
