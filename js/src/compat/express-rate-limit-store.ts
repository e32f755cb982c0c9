import { windowOf } from "../arkos/gateway-store.js";
import type { Decision } from "../decision.js";
import { TidegateError } from "../errors.js";
import type { Limiter } from "../limiter.js";
import type { Store } from "../store.js";
import { type CompatOptions, Counters, UNLIMITED } from "./counters.js";

/** What express-rate-limit and hono-rate-limiter know of a client. */
export interface ClientRateLimitInfo {
  totalHits: number;
  resetTime: Date;
}

/** The store that express-rate-limit and hono-rate-limiter ask for. */
export class ExpressRateLimitStore {
  /** Whether another instance cannot count on the same keys. */
  readonly localKeys: boolean;
  /** Forgets everybody. Only where nobody else shares the store. */
  readonly resetAll: (() => Promise<void>) | undefined;
  readonly #store: Store;
  readonly #options: CompatOptions;
  readonly #ownPrefix: string;
  #counters: Counters;
  #generation = 0;
  #windowMs: number | undefined;

  constructor(store: Store, options: CompatOptions = {}) {
    this.#store = store;
    this.#options = options;
    this.#counters = new Counters(store, "express-rate-limit", options);
    this.#ownPrefix = this.#counters.prefix;
    this.localKeys = this.#counters.local;
    this.resetAll = this.localKeys ? () => this.#startAnew() : undefined;
  }

  /** Tells two limiters of one process apart. */
  get prefix(): string {
    return this.#counters.prefix;
  }

  /** Takes the window; one that makes no sense fails every hit, because the framework only logs it here. */
  init({ windowMs }: { windowMs: number }): void {
    this.#windowMs = undefined;
    this.#windowMs = windowOf(windowMs);
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    return info(await this.#limiter().consume(key));
  }

  /** Takes a hit back: never below none, and never from a client of whom nothing is known. */
  async decrement(key: string): Promise<void> {
    await this.#limiter().refund(key, 1);
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const known = info(await this.#limiter().peek(key));
    return known.totalHits === 0 ? undefined : known;
  }

  async resetKey(key: string): Promise<void> {
    await this.#limiter().reset(key);
  }

  /** The store itself is the caller's, and stays open. */
  async shutdown(): Promise<void> {
    await this.#counters.close();
  }

  #limiter(): Limiter {
    if (this.#windowMs !== undefined) return this.#counters.of(this.#windowMs);
    throw new TidegateError("bad_policy", "init() has not been called with a windowMs that works");
  }

  /** Counts under a name that nobody had; what was counted before is over when its window is. */
  async #startAnew(): Promise<void> {
    const old = this.#counters;
    this.#generation += 1;
    const prefix = `${this.#ownPrefix}+${this.#generation}`;
    this.#counters = new Counters(this.#store, "express-rate-limit", { ...this.#options, prefix });
    await old.close();
  }
}

/** A hit that found no room in a bounded store has the highest count, which every limit refuses. */
function info({ remaining, resetAfterMs }: Decision): ClientRateLimitInfo {
  return { totalHits: UNLIMITED - remaining, resetTime: new Date(Date.now() + resetAfterMs) };
}
