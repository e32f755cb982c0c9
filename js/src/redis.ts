import { isolatesRequests } from "#wasm";
import { checkOptions, flag } from "./options.js";
import { keyPrefixOf, type ScriptAdapter, scriptRunner } from "./redis/client.js";
import { RedisDriver } from "./redis/driver.js";
import { Grouping } from "./redis/grouping.js";
import {
  SCRIPT_STORE_OPTIONS,
  type ScriptStoreOptions,
  scriptStore,
} from "./redis/script-store.js";
import { type Capabilities, DRIVER, type Store } from "./store.js";

export type { ScriptAdapter };

export interface RedisStoreOptions extends ScriptStoreOptions {
  /** Whether keys are spread over slots. Default: asked of the server once. */
  cluster?: boolean;
}

/**
 * Redis or Valkey: exact over the fleet, one round trip for the decisions of a tick, up to `maxBatch`, on the server's clock.
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
    checkOptions(options, [...SCRIPT_STORE_OPTIONS, "cluster"]);
    const told = options.cluster === undefined ? undefined : flag(options.cluster, "cluster");
    const run = scriptRunner(client);
    // A ScriptAdapter counts as a single server unless its user says otherwise.
    const adapter = typeof (client as ScriptAdapter).evalScript === "function";
    const grouping = new Grouping(run, told ?? (adapter ? false : undefined), keyPrefixOf(client));
    // What an adapter runs on may end a request, and every callback of it, before a lingering batch has left.
    const made = scriptStore(run, options, {
      group: (key) => grouping.of(key),
      isOne: () => grouping.isOne,
      lingers: !adapter && !isolatesRequests,
    });
    this.capabilities = made.capabilities;
    this[DRIVER] = new RedisDriver(made.batches, made.prefix);
  }

  /** The client is the caller's, and stays open. */
  async close(): Promise<void> {}
}
