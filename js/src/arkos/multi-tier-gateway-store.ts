import { Deadlines } from "../deadlines.js";
import { errorFrom, TidegateError } from "../errors.js";
import { tellStoreError } from "../guarded.js";
import { bad, checkKey, checkOptions, type Duration, timeoutMs } from "../options.js";
import { ARKOS_METHODS, type ArkosGatewayStore, ttlMsOf, windowOf } from "./gateway-store.js";
import { type Counted, Hits } from "./hits.js";
import { TimedStore } from "./timed-store.js";

export interface MultiTierOptions {
  /** Is told what a tier threw where another one's answer stands, and which hits no tier will be told. */
  onError?: (error: unknown) => void;
  /** How long one call may take a tier: after that it has failed. Default 5 s. */
  timeout?: Duration;
}

/** How long a hit of a tier is remembered in those before it: nobody told how long it stays. */
const PROMOTED_S = 1;
/** So many keys' hits are followed. */
const MOST_KEYS = 100_000;
const DEFAULT_TIMEOUT_MS = 5_000;

/**
 * Any number of Arkos stores, fastest first, whoever wrote them. Counters are answered by the first at once and told to
 * the rest behind it, so that every process may admit as many hits too many as it has not told yet; ids are decided by
 * the last.
 *
 * @example
 * const store = new MultiTierArkosGatewayStore([new MemoryGatewayStore(), shared], {
 *   onError: (error) => console.error(error),
 * });
 */
export class MultiTierArkosGatewayStore implements ArkosGatewayStore {
  readonly #first: ArkosGatewayStore;
  readonly #rest: readonly ArkosGatewayStore[];
  readonly #onError: ((error: unknown) => void) | undefined;
  readonly #hits = new Map<string, Hits>();
  /** Keys of which all is told, and that may be forgotten; that longest so in front. */
  readonly #idle = new Set<string>();
  #clearing: Promise<void> = Promise.resolve();

  constructor(tiers: ArkosGatewayStore[], options: MultiTierOptions = {}) {
    checkTiers(tiers);
    checkOptions(options, ["onError", "timeout"]);
    const { onError } = options;
    if (onError !== undefined && typeof onError !== "function") {
      bad("bad_policy", 'option "onError"', onError, "a function");
    }
    const deadlines = new Deadlines(timeoutMs(options.timeout, DEFAULT_TIMEOUT_MS));
    const [first, ...rest] = tiers.map((tier) => new TimedStore(tier, deadlines));
    this.#first = first as ArkosGatewayStore;
    this.#rest = rest;
    this.#onError = onError;
  }

  /**
   * Counts a hit in the key's fixed window: the first tier answers, with what other processes are known to have counted;
   * the rest are told at once behind it, in order. Where the first fails, the rest are waited for.
   */
  async increment(key: string, windowMs: number): Promise<Counted> {
    checkKey(key, "key");
    const window = windowOf(windowMs);
    if (this.#rest.length === 0) return this.#first.increment(key, window);
    const first = await this.#trying(() => this.#first.increment(key, window));
    const hits = this.#hitsOf(key);
    if (hits === undefined) {
      const why = `hits on ${MOST_KEYS} keys wait for a tier that does not answer; this one is not told`;
      this.#failed(new TidegateError("store", why));
      return first ?? (await this.#last.increment(key, window));
    }
    hits.add(window);
    if (first !== undefined) return hits.seenWith(first);
    await hits.settled();
    const nothing = { count: 0, resetAt: 0 };
    const seen = hits.seenWith(nothing);
    if (seen !== nothing) return seen;
    throw new TidegateError("store", "no tier counted the hit");
  }

  /** Forgets what is under the keys that begin with the prefix, in every tier: what was counted before stays told to none. */
  clear(prefix: string): Promise<void> {
    const cleared = this.#clearing.then(() => this.#clear(prefix));
    this.#clearing = cleared.catch(() => {});
    return cleared;
  }

  /** Whether the key is set in any tier. Those before it remember that for a second. */
  async has(key: string): Promise<boolean> {
    checkKey(key, "key");
    const at = await this.#whoHas(key, this.#tiers);
    if (at === undefined) return false;
    await this.#setAll(this.#tiers.slice(0, at), key, PROMOTED_S);
    return true;
  }

  /** Sets the key in every tier; in the last one first, since what that does not know is not set. */
  async set(key: string, ttl: number): Promise<void> {
    checkKey(key, "key");
    ttlMsOf(ttl);
    await this.#last.set(key, ttl);
    await this.#setAll(this.#tiers.slice(0, -1), key, ttl);
  }

  /** Sets the key unless it is set. Only "already set" is answered by the others; "new" by the last tier alone. */
  async setIfNotExists(key: string, ttl: number): Promise<boolean> {
    checkKey(key, "key");
    ttlMsOf(ttl);
    const others = this.#tiers.slice(0, -1);
    const at = await this.#whoHas(key, others);
    const isNew = at === undefined && (await this.#last.setIfNotExists(key, ttl));
    await this.#setAll(others.slice(0, at), key, isNew ? ttl : PROMOTED_S);
    return isNew;
  }

  /** Waits until every tier has been told what was counted before, or has not answered in time. */
  async flush(): Promise<void> {
    await Promise.all([...this.#hits.values()].map((hits) => hits.settled()));
  }

  get #tiers(): ArkosGatewayStore[] {
    return [this.#first, ...this.#rest];
  }

  get #last(): ArkosGatewayStore {
    return this.#rest.at(-1) ?? this.#first;
  }

  async #clear(prefix: string): Promise<void> {
    checkKey(prefix, "prefix");
    const below = [...this.#hits].filter(([key]) => key.startsWith(prefix));
    await Promise.all(below.map(([, hits]) => hits.pause()));
    const before = below.map(([, { untold }]) => untold);
    const answers = await Promise.allSettled(this.#tiers.map((tier) => tier.clear(prefix)));
    const last = answers.pop();
    for (const [at, [key, hits]] of below.entries()) {
      // A store may clear less than begins with the prefix: what it may not have cleared is told all the same.
      const isCleared = key === prefix || key.startsWith(`${prefix}:`);
      hits.resume(isCleared && last?.status === "fulfilled" ? (before[at] as number) : 0);
    }
    for (const answer of answers) if (answer.status === "rejected") this.#failed(answer.reason);
    if (last?.status === "rejected") throw last.reason;
  }

  /** Which of the tiers has the key. One that fails is passed over, unless it is the last of all. */
  async #whoHas(key: string, tiers: readonly ArkosGatewayStore[]): Promise<number | undefined> {
    for (const [at, tier] of tiers.entries()) {
      const ask = () => tier.has(key);
      const has = tier === this.#last ? await ask() : await this.#trying(ask);
      if (has === true) return at;
    }
    return undefined;
  }

  async #setAll(tiers: readonly ArkosGatewayStore[], key: string, ttl: number): Promise<void> {
    await Promise.all(tiers.map((tier) => this.#trying(() => tier.set(key, ttl))));
  }

  async #trying<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  #hitsOf(key: string): Hits | undefined {
    let hits = this.#hits.get(key);
    if (hits === undefined) {
      if (this.#hits.size >= MOST_KEYS && !this.#dropIdle()) return undefined;
      hits = new Hits(key, this.#rest, this.#failed, () => this.#idle.add(key));
      this.#hits.set(key, hits);
    }
    this.#idle.delete(key);
    return hits;
  }

  #dropIdle(): boolean {
    const [oldest] = this.#idle;
    return oldest !== undefined && this.#idle.delete(oldest) && this.#hits.delete(oldest);
  }

  /** An error of a tier that another one's answer stands in for: never silent, and nobody's rejection. */
  #failed = (error: unknown): void => {
    tellStoreError(errorFrom(error));
    try {
      this.#onError?.(error);
    } catch {}
  };
}

function checkTiers(tiers: unknown): void {
  if (!Array.isArray(tiers) || tiers.length === 0) {
    bad("bad_policy", "tiers", tiers, "an array of at least one Arkos store");
  }
  for (const [at, tier] of tiers.entries()) {
    for (const method of ARKOS_METHODS) {
      if (typeof tier?.[method] === "function") continue;
      bad("bad_policy", `tiers[${at}].${method}`, tier?.[method], "a method");
    }
  }
}
