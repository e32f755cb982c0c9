import type { Decision } from "../decision.js";
import { show, TidegateError } from "../errors.js";
import { joinKey } from "../key.js";
import { type Counters, UNLIMITED } from "./counters.js";

/** What @fastify/rate-limit tells its store of a plugin's or a route's options. */
export interface FastifyRateLimitParams {
  continueExceeding?: boolean;
  exponentialBackoff?: boolean;
  ban?: number;
  groupId?: string;
  routeInfo?: { method?: string | string[]; url?: string };
}

/** Hits within the window, and the milliseconds until it is over. */
export interface FastifyHits {
  current: number;
  ttl: number;
}

type Callback = (error: unknown, hits: FastifyHits | null) => void;

/** The store that @fastify/rate-limit asks for. Each route with options of its own has a child, and counts apart. */
export class FastifyRateLimitStore {
  readonly #counters: (prefix?: string) => Counters;
  readonly #own: Counters;
  readonly #continueExceeding: boolean;
  #children = 0;

  /** @param counters makes the counters of a prefix, or those of the plugin. */
  constructor(
    counters: (prefix?: string) => Counters,
    params: FastifyRateLimitParams,
    prefix?: string,
  ) {
    const { continueExceeding = false, exponentialBackoff = false, ban = -1 } = params;
    if (exponentialBackoff) throw unsupported("exponentialBackoff");
    if (continueExceeding && ban > 0) throw unsupported(`continueExceeding with ban: ${show(ban)}`);
    this.#counters = counters;
    this.#own = counters(prefix);
    this.#continueExceeding = continueExceeding;
  }

  incr(key: string, callback: Callback, timeWindow: number, max: number): void {
    this.#hit(key, timeWindow, max).then(
      (hits) => callback(null, hits),
      (error) => callback(error, null),
    );
  }

  /** As `incr`, changing nothing. */
  read(key: string, callback: Callback, timeWindow: number, max = 0): void {
    this.#look(key, timeWindow, max).then(
      (hits) => callback(null, hits),
      (error) => callback(error, null),
    );
  }

  /** Routes of one group count together, any other apart. */
  child(params: FastifyRateLimitParams): FastifyRateLimitStore {
    return new FastifyRateLimitStore(this.#counters, params, this.#childPrefix(params));
  }

  #childPrefix({ groupId, routeInfo = {} }: FastifyRateLimitParams): string {
    const { prefix } = this.#own;
    if (groupId !== undefined) return joinKey(prefix, "group", groupId);
    const { method, url } = routeInfo;
    if (url !== undefined) return joinKey(prefix, "route", String(method), url);
    // A limiter that was made by hand has no route; the same program makes them in the same order everywhere.
    this.#children += 1;
    return joinKey(prefix, "child", String(this.#children));
  }

  async #hit(key: string, timeWindow: number, max: number): Promise<FastifyHits> {
    const limiter = this.#own.of(timeWindow);
    const hits = hitsOf(await limiter.consume(key), max);
    if (!this.#continueExceeding || hits.current <= max) return hits;
    // Who goes on has a whole window to wait, from each hit on.
    await limiter.block(key, timeWindow);
    return { current: hits.current, ttl: timeWindow };
  }

  async #look(key: string, timeWindow: number, max: number): Promise<FastifyHits> {
    const hits = hitsOf(await this.#own.of(timeWindow).peek(key), max);
    return hits.current === 0 ? { current: 0, ttl: 0 } : hits;
  }
}

/** What is denied here (a block, a bounded store without room) has one hit more than the framework allows. */
function hitsOf({ allowed, remaining, resetAfterMs }: Decision, max: number): FastifyHits {
  return { current: allowed ? UNLIMITED - remaining : max + 1, ttl: resetAfterMs };
}

function unsupported(option: string): TidegateError {
  return new TidegateError(
    "unsupported",
    `fastifyRateLimitStore cannot do ${option}: hits are not counted on while a client has to wait`,
  );
}
