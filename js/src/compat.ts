/** Our stores in the rate limiters of the frameworks. */

import { type CompatOptions, Counters } from "./compat/counters.js";
import { ExpressRateLimitStore } from "./compat/express-rate-limit-store.js";
import {
  type FastifyRateLimitParams,
  FastifyRateLimitStore,
} from "./compat/fastify-rate-limit-store.js";
import { NestThrottlerStorage } from "./compat/nest-throttler-storage.js";
import type { Store } from "./store.js";

export type { CompatOptions } from "./compat/counters.js";

// The frameworks' own types are not ours to import, and each takes what fits its own: hence `any`.

/**
 * A store for express-rate-limit and hono-rate-limiter. Each limiter needs one of its own.
 *
 * @example
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store: expressRateLimitStore(new MemoryStore()) }));
 */
export function expressRateLimitStore(store: Store, options?: CompatOptions): any {
  return new ExpressRateLimitStore(store, options);
}

/**
 * A store class for @fastify/rate-limit, which makes its instances itself.
 *
 * @example
 * await app.register(rateLimit, { max: 100, timeWindow: "1 minute", store: fastifyRateLimitStore(store) });
 */
export function fastifyRateLimitStore(store: Store, options?: CompatOptions): any {
  const counters = (prefix?: string): Counters =>
    new Counters(
      store,
      "fastify-rate-limit",
      prefix === undefined ? options : { ...options, prefix },
    );
  // What the store cannot do is refused here, where the caller sees it.
  counters();
  return class extends FastifyRateLimitStore {
    constructor(params: FastifyRateLimitParams = {}) {
      super(counters, params);
    }
  };
}

/**
 * A storage for @nestjs/throttler.
 *
 * @example
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 10 }], storage: nestThrottlerStorage(store) });
 */
export function nestThrottlerStorage(store: Store, options?: CompatOptions): any {
  return new NestThrottlerStorage(new Counters(store, "nest-throttler", options));
}
