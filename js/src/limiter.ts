import { type Decision, undecided } from "./decision.js";
import { limiterClosed, TidegateError } from "./errors.js";
import { emit, isHeard } from "./events.js";
import { type Failed, Guarded } from "./guarded.js";
import { type LimitOptions, type Limits, limitsFrom } from "./limits.js";
import { MemoryStore } from "./memory-store.js";
import { DecisionCounter } from "./metrics.js";
import {
  checkKey,
  checkOptions,
  costOf,
  type Duration,
  durationMs,
  flag,
  isPlainObject,
  oneOf,
  prefixOf,
  timeoutMs,
} from "./options.js";
import type { Answer } from "./pending.js";
import {
  DRIVER,
  driverOf,
  type Handle,
  type HandleOwner,
  type LimitDriver,
  requireExact,
  type Store,
  type SyncLimitDriver,
} from "./store.js";

/** What a failed store means for a decision. */
export type OnStoreError = "throw" | "allow" | "deny" | "local";

export interface LimiterOptions {
  /** One limit, or several that are checked as one: all are charged, or none is. */
  limit: LimitOptions | LimitOptions[];
  /** Default: a new MemoryStore. */
  store?: Store;
  /** Namespaces the keys. Default "tg". State belongs to (prefix, key, limit name), a block to (prefix, key). */
  prefix?: string;
  /** Default "throw". "local": an in-process MemoryStore decides until the store answers again. */
  onStoreError?: OnStoreError;
  /** Deadline of one decision, however many store calls it takes. Default 500 ms. */
  timeout?: Duration;
  /** Decide and report, but let everything through. */
  dryRun?: boolean;
  /** Accept a best-effort store. Without it: "unsupported". */
  bestEffort?: boolean;
}

const KNOWN = ["limit", "store", "prefix", "onStoreError", "timeout", "dryRun", "bestEffort"];
const DEFAULT_TIMEOUT_MS = 500;

/**
 * Decides whether calls are admitted, and charges them.
 *
 * @example
 * const limiter = new Limiter({ limit: { limit: 10, window: "1s" } });
 * const { allowed, retryAfterMs } = await limiter.consume("user:42");
 */
export class Limiter {
  readonly #limits: Limits;
  readonly #driver: LimitDriver;
  readonly #sync: SyncLimitDriver | undefined;
  readonly #guarded: Guarded;
  readonly #dryRun: boolean;
  readonly #prefix: string;
  /** What handles need of this Limiter. */
  readonly #owner: HandleOwner;
  /** Where none was given: nobody else knows it, so it goes with the Limiter. */
  readonly #ownStore: MemoryStore | undefined;
  /** Decides while the store does not, with onStoreError "local". */
  #local: SyncLimitDriver | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: LimiterOptions) {
    checkOptions(options, KNOWN);
    this.#limits = limitsFrom(options.limit);
    this.#prefix = prefixOf(options.prefix);
    this.#dryRun = flag(options.dryRun, "dryRun");
    this.#owner = {
      closed: false,
      dryRun: this.#dryRun,
      counts: new DecisionCounter(this.#limits.names),
      tell: (key, decision) => this.#tell(key, decision),
    };
    const actions = ["throw", "allow", "deny", "local"] as const;
    const onStoreError = oneOf(options.onStoreError, "onStoreError", actions, "throw");
    const timeout = timeoutMs(options.timeout, DEFAULT_TIMEOUT_MS);
    const bestEffort = flag(options.bestEffort, "bestEffort");
    if (options.store === undefined) this.#ownStore = new MemoryStore();
    const store = this.#ownStore ?? (options.store as Store);
    const driver = driverOf(store);
    requireExact(store, bestEffort, "a limit");
    const { synchronous } = store.capabilities;
    this.#guarded = new Guarded("limiter", onStoreError, timeout, synchronous);
    this.#driver = driver.limits(this.#prefix, this.#limits, timeout);
    this.#sync = synchronous ? (this.#driver as SyncLimitDriver) : undefined;
  }

  /**
   * Decides and charges. A denied call charges nothing.
   *
   * @param options.cost units, a positive safe integer; default 1.
   */
  consume(key: string, options?: { cost?: number }): Promise<Decision> {
    try {
      const cost = this.#check(key, options);
      if (this.#sync !== undefined) {
        return Promise.resolve(this.#tell(key, this.#sync.consume(key, cost)));
      }
      const known = this.#driver.atOnce?.(key, cost);
      if (known !== undefined) return Promise.resolve(this.#tell(key, known));
      return this.#ask(
        (driver) => driver.consume(key, cost),
        (decision) => this.#tell(key, decision),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `consume`, at once.
   *
   * @throws TidegateError "sync_unavailable" where the store is not synchronous.
   */
  consumeSync(key: string, options?: { cost?: number }): Decision {
    const cost = this.#check(key, options);
    return this.#tell(key, this.#synchronous().consume(key, cost));
  }

  /** A key made ready once, for the hot path; synchronous stores only. Stays correct after expiry, eviction and reset. */
  handle(key: string): Handle {
    this.#check(key, undefined);
    return this.#synchronous().handle(key, this.#owner);
  }

  /**
   * What `consume` would answer in allowed, reason, limitName and retryAfterMs; remaining and resetAfterMs
   * describe the state as it is. Changes and stores nothing.
   */
  async peek(key: string, options?: { cost?: number }): Promise<Decision> {
    const cost = this.#check(key, options);
    return this.#ask(
      (driver) => driver.peek(key, cost),
      (decision) => this.#dry(decision),
    );
  }

  /** Gives units back, never above a full budget, never creating state. */
  async refund(key: string, cost?: number | { cost?: number }): Promise<void> {
    const options = isPlainObject(cost) || cost === undefined ? cost : { cost };
    const units = this.#check(key, options as { cost?: number } | undefined);
    await this.#change((driver) => driver.refund(key, units));
  }

  /** Denies every call on the key for that long, whatever its budget. */
  async block(key: string, duration: Duration): Promise<void> {
    this.#check(key, undefined);
    const ms = durationMs(duration, "duration", "bad_argument");
    await this.#change((driver) => driver.block(key, ms));
  }

  async unblock(key: string): Promise<void> {
    this.#check(key, undefined);
    await this.#change((driver) => driver.unblock(key));
  }

  /** Forgets this key, and only this key: its budget is whole and it is not blocked. */
  async reset(key: string): Promise<void> {
    this.#check(key, undefined);
    await this.#change((driver) => driver.reset(key));
  }

  /** Stops background work and returns what it holds. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#owner.closed = true;
    await this.#driver.close();
    this.#ownStore?.[DRIVER].release();
  }

  #check(key: unknown, options: unknown): number {
    if (this.#owner.closed) throw limiterClosed();
    checkKey(key, "key");
    return costOf(options);
  }

  #synchronous(): SyncLimitDriver {
    if (this.#sync !== undefined) return this.#sync;
    throw new TidegateError(
      "sync_unavailable",
      "the store is not synchronous; use consume(), which answers a promise",
    );
  }

  #change(change: (driver: LimitDriver) => Answer<void>): Promise<void> {
    return this.#guarded.must(() => change(this.#driver));
  }

  /** What is told of the store's decision, or of what stands for one when the store fails. */
  #ask(
    decide: (driver: LimitDriver) => Answer<Decision>,
    told: (decision: Decision) => Decision,
  ): Promise<Decision> {
    return this.#guarded.ask(
      () => decide(this.#driver),
      told,
      (failed) => told(this.#without(failed, decide)),
    );
  }

  #without(
    { error, action, retryAfterMs }: Failed,
    decide: (driver: LimitDriver) => Answer<Decision>,
  ): Decision {
    if (action === "throw") throw error;
    if (action === "local") {
      const decision = decide(this.#locally()) as Decision;
      return { ...decision, local: true };
    }
    const reason = error.code === "timeout" ? "timeout" : "store-error";
    const { capacities, names } = this.#limits;
    const capacity = capacities[0] as number;
    return undecided(reason, action === "allow", retryAfterMs, capacity, names[0] as string);
  }

  #locally(): SyncLimitDriver {
    this.#local ??= new MemoryStore()[DRIVER].limits(this.#prefix, this.#limits);
    return this.#local;
  }

  #tell(key: string, decision: Decision): Decision {
    this.#owner.counts.add(decision);
    const told = this.#dry(decision);
    if (isHeard()) emit({ type: "decision", key, decision: told });
    return told;
  }

  #dry(decision: Decision): Decision {
    return this.#dryRun && !decision.allowed
      ? { ...decision, allowed: true, dryRun: true }
      : decision;
  }
}
