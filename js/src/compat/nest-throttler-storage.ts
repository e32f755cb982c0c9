import type { Decision } from "../decision.js";
import { errorFrom } from "../errors.js";
import { joinKey } from "../key.js";
import { type Counters, seconds, UNLIMITED } from "./counters.js";

/** What @nestjs/throttler asks of a hit. Times are in seconds. */
export interface ThrottlerStorageRecord {
  totalHits: number;
  timeToExpire: number;
  isBlocked: boolean;
  timeToBlockExpire: number;
}

const LONGEST_BLOCK_MS = 365 * 86_400_000;
/** A denial stands, whether the block behind it could be stored or not. */
const STORE_FAILURES = new Set(["store", "timeout", "contention"]);

/** The storage that @nestjs/throttler asks for. Each throttler counts apart, whatever keys it makes. */
export class NestThrottlerStorage {
  readonly #counters: Counters;

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerStorageRecord> {
    const most = Math.min(Math.floor(limit), UNLIMITED);
    if (most < 1) return nobody(ttl, blockDuration);
    const counted = joinKey(throttlerName, key);
    const hit = await this.#counters.of(ttl, most).consume(counted);
    const denial = denialOf(hit, most);
    if (hit.allowed) {
      const totalHits = most - hit.remaining;
      return { ...denial, totalHits, isBlocked: false, timeToBlockExpire: 0 };
    }
    if (hit.reason !== "limited" || blockDuration <= 0) return denial;
    const blockMs = Math.min(Math.ceil(blockDuration), LONGEST_BLOCK_MS);
    const blocked = await this.#block(counted, ttl, most, blockMs);
    return blocked ? { ...denial, timeToBlockExpire: seconds(blockMs) } : denial;
  }

  /** Blocks, and after that gives the budget back: when the block is over the client starts anew. */
  async #block(key: string, ttl: number, limit: number, blockMs: number): Promise<boolean> {
    try {
      await this.#counters.of(ttl, limit).block(key, blockMs);
      await this.#counters.of(ttl, limit).refund(key, limit);
      return true;
    } catch (thrown) {
      const error = errorFrom(thrown);
      if (STORE_FAILURES.has(error.code)) return false;
      throw error;
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#counters.close();
  }
}

function denialOf({ resetAfterMs, retryAfterMs }: Decision, limit: number): ThrottlerStorageRecord {
  return {
    totalHits: limit + 1,
    timeToExpire: seconds(resetAfterMs),
    isBlocked: true,
    timeToBlockExpire: seconds(retryAfterMs),
  };
}

/** A limit that admits nobody needs no state. */
function nobody(ttl: number, blockDuration: number): ThrottlerStorageRecord {
  return {
    totalHits: 1,
    timeToExpire: seconds(ttl),
    isBlocked: true,
    timeToBlockExpire: seconds(Math.max(ttl, blockDuration)),
  };
}
