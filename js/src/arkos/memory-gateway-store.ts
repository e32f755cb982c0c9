import { MemoryStore } from "../memory-store.js";
import { checkOptions } from "../options.js";
import { toArkosStore } from "../to-arkos-store.js";
import type { ArkosGatewayStore } from "./gateway-store.js";

export interface MemoryGatewayStoreOptions {
  /** Bound on live counters, and on remembered ids. Default 1 000 000. */
  maxKeys?: number;
  /** The clock, in milliseconds since the epoch. */
  now?: () => number;
}

/**
 * Arkos' store in process memory: exact, bounded, without timers. When all keys are in use, new ones are
 * over every limit, and new ids are a "store" error.
 *
 * @example
 * gateway.register(io, { store: new MemoryGatewayStore() });
 */
export class MemoryGatewayStore implements ArkosGatewayStore {
  readonly #table: ArkosGatewayStore;

  constructor(options: MemoryGatewayStoreOptions = {}) {
    checkOptions(options, ["maxKeys", "now"]);
    this.#table = toArkosStore(new MemoryStore(options));
  }

  /** Counts a hit in the key's fixed window; `resetAt` is when that ends, in milliseconds since the epoch. */
  increment(key: string, windowMs: number): Promise<{ count: number; resetAt: number }> {
    return this.#table.increment(key, windowMs);
  }

  /** Forgets the key `prefix` and those that begin with it and a colon, counters and ids, and no others. */
  clear(prefix: string): Promise<void> {
    return this.#table.clear(prefix);
  }

  /** Whether the key was set and its time has not run out. */
  has(key: string): Promise<boolean> {
    return this.#table.has(key);
  }

  /** Sets the key for `ttl` seconds from now, whether it was set or not. */
  set(key: string, ttl: number): Promise<void> {
    return this.#table.set(key, ttl);
  }

  /** Sets the key for `ttl` seconds unless it is set; true for exactly one of several callers. */
  setIfNotExists(key: string, ttl: number): Promise<boolean> {
    return this.#table.setIfNotExists(key, ttl);
  }
}
