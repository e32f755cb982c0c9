import { checkOptions } from "../options.js";
import { RedisStore } from "../redis.js";
import { toArkosStore } from "../to-arkos-store.js";
import type { ArkosGatewayStore } from "./gateway-store.js";

export interface RedisArkosGatewayStoreOptions {
  /** Namespaces everything in the store. Default: none. */
  prefix?: string;
}

/**
 * Arkos' store on Redis or Valkey, single, behind Sentinel or a cluster: one budget and one memory of ids for all
 * nodes, by the server's clock, and never a key without a time to live. A call that fails, or is not answered within
 * half a second, rejects.
 *
 * @example
 * gateway.register(io, { store: new RedisArkosGatewayStore(new Redis()) }); // ioredis, node-redis and others
 */
export class RedisArkosGatewayStore implements ArkosGatewayStore {
  readonly #table: ArkosGatewayStore;

  /**
   * @param client as RedisStore takes it, and left open.
   */
  constructor(client: unknown, options: RedisArkosGatewayStoreOptions = {}) {
    checkOptions(options, ["prefix"]);
    this.#table = toArkosStore(new RedisStore(client, options));
  }

  /** Counts a hit in the key's fixed window; `resetAt` is when that ends, in milliseconds since the epoch. */
  increment(key: string, windowMs: number): Promise<{ count: number; resetAt: number }> {
    return this.#table.increment(key, windowMs);
  }

  /**
   * Forgets what is kept of a socket, `arkos::rl:{socketId}`: that key and those that begin with it and a colon, by
   * one delete. Arkos clears nothing else.
   *
   * @throws TidegateError "unsupported" for any other prefix: its keys could only be found by a look at all.
   */
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
