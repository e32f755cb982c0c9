import { checkOptions, countOf, prefixOf } from "../options.js";
import { patient } from "../remote/patient.js";
import { Requests } from "../remote/requests.js";
import { type Capabilities, DRIVER, type Driver, type Store } from "../store.js";
import { Batches } from "../wire/batches.js";
import { exactFleet } from "../wire/capabilities.js";
import { WireDriver } from "../wire/driver.js";
import { DEFAULT_SHARDS, MOST_SHARDS } from "./setting.js";
import { namespaceOf, Shards } from "./shards.js";

export interface DurableObjectStoreOptions {
  /** How many objects share the keys, 1 to 1 024. Default 64. Part of each object's name. */
  shards?: number;
  /** Namespaces everything in the store, before the prefixes of its users. Default: none. */
  prefix?: string;
}

/** What an object takes at once: nobody else is served meanwhile. */
const MOST = { operations: 1_000, length: 512 * 1024 };

/**
 * A Durable Object namespace that is bound to `TidegateShard`: exact over everyone who uses it, on each object's
 * clock. What is asked for in one tick travels in one request to each object that is concerned, and none is sent
 * twice. Another number of shards than the deployment's is a "store" error, never a second budget.
 *
 * @example
 * const store = new DurableObjectStore(env.TIDEGATE_SHARD);
 * const limiter = new Limiter({ limit: { limit: 100, window: "1m" }, store, onStoreError: "allow" });
 */
export class DurableObjectStore implements Store {
  readonly capabilities: Capabilities = exactFleet("store");
  readonly [DRIVER]: Driver;

  constructor(namespace: unknown, options: DurableObjectStoreOptions = {}) {
    checkOptions(options, ["shards", "prefix"]);
    const { shards: count = DEFAULT_SHARDS } = options;
    const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
    const requests = new Requests("the object");
    const shards = new Shards(
      namespaceOf(namespace),
      countOf(count, "shards", MOST_SHARDS),
      requests,
    );
    const batches = new Batches((batch) => shards.send(batch), MOST, {
      group: (key) => shards.of(key),
      isOne: () => false,
      lingers: false,
    });
    this[DRIVER] = patient(new WireDriver(batches, prefix), requests);
  }

  /** Holds nothing. */
  async close(): Promise<void> {}
}
