import { type Limits, limitsFrom } from "../limits.js";
import type { MemoryDriver, MemoryLimits } from "../memory-store.js";
import { MessageCall } from "../message-call.js";
import { checkKey } from "../options.js";
import type { SyncMessageDriver } from "../store.js";
import { type ArkosGatewayStore, ttlMsOf, windowOf } from "./gateway-store.js";

/** Windows of which the limits are kept ready. An app has a few; a caller with ever new ones must not fill memory. */
const MAX_WINDOWS = 100;

/** What a MemoryStore keeps for Arkos, apart from all prefixes: limits and ids that are cleared together. */
export class ArkosMemoryTable implements ArkosGatewayStore {
  readonly #driver: MemoryDriver;
  readonly #messages: SyncMessageDriver;
  readonly #counters = new Map<number, MemoryLimits>();

  constructor(driver: MemoryDriver) {
    this.#driver = driver;
    this.#messages = driver.messageTree();
  }

  async increment(key: string, windowMs: number): Promise<{ count: number; resetAt: number }> {
    checkKey(key, "key");
    const counter = this.#counter(windowOf(windowMs));
    const now = Math.floor(this.#driver.now());
    const { remaining, resetAfterMs } = counter.consume(key, 1, now);
    // A table that is full denies without a count: the highest, which every limit refuses.
    return {
      count: Number.MAX_SAFE_INTEGER - remaining,
      resetAt: this.#driver.epoch(now) + resetAfterMs,
    };
  }

  async clear(prefix: string): Promise<void> {
    checkKey(prefix, "prefix");
    const [anyCounter] = this.#counters.values();
    this.#driver.clear(prefix, anyCounter);
  }

  async has(key: string): Promise<boolean> {
    checkKey(key, "key");
    return this.#messages.call(key, MessageCall.look()).status === "duplicate";
  }

  async set(key: string, ttl: number): Promise<void> {
    checkKey(key, "key");
    this.#messages.call(key, MessageCall.put(ttlMsOf(ttl)));
  }

  async setIfNotExists(key: string, ttl: number): Promise<boolean> {
    checkKey(key, "key");
    return this.#messages.first(key, ttlMsOf(ttl));
  }

  #counter(windowMs: number): MemoryLimits {
    let counter = this.#counters.get(windowMs);
    if (counter === undefined) {
      if (this.#counters.size >= MAX_WINDOWS) this.#dropOldest();
      counter = this.#driver.limitTree(counterLimits(windowMs));
      this.#counters.set(windowMs, counter);
    }
    return counter;
  }

  #dropOldest(): void {
    const [oldest] = this.#counters;
    if (oldest === undefined) return;
    this.#counters.delete(oldest[0]);
    oldest[1].close();
  }
}

/** A limit that nobody reaches, to count hits by. */
function counterLimits(window: number): Limits {
  return limitsFrom({ algorithm: "fixed-window", limit: Number.MAX_SAFE_INTEGER, window });
}
