import { BurstDetector, type BurstDetectorOptions } from "../burst-detector.js";
import { Deduplicator, type DeduplicatorOptions } from "../deduplicator.js";
import { TidegateError } from "../errors.js";
import { Limiter, type LimiterOptions } from "../limiter.js";
import type { LimitOptions } from "../limits.js";
import type { Store } from "../store.js";

/** What an author tells beside the store. */
export interface ConformanceOptions {
  /** Moves the store's clock ahead. With it nothing waits, and every wait is checked to the millisecond. */
  advance?: (ms: number) => Promise<void>;
  /**
   * How many records the store holds that have not expired. With it and `advance`, the suite checks that
   * none stays for ever.
   */
  size?: () => Promise<number> | number;
}

/** What a case asks of a store; one that does not have it leaves the case out. */
export type Need =
  /** Races have one winner. */
  | "exact"
  /** Races may be lost. */
  | "best-effort"
  /** The store runs every operation, not only those of a five-method store. */
  | "records"
  /** It runs only those. */
  | "five methods"
  /** Time can be moved. */
  | "advance"
  /** Time has to be waited for. */
  | "wait"
  /** Records can be counted. */
  | "size";

export interface Case {
  readonly name: string;
  readonly needs: readonly Need[];
  readonly body: (trial: Trial) => Promise<void>;
}

/** Long enough that no test's own duration matters to what is left of a budget. */
const LONG_MS = 4 * 3_600_000;
/** The suite asks what a store answers, not how fast; a store that never answers is found all the same. */
const TIMEOUT_MS = 10_000;
/** Longer than a case may wait for time to pass. */
const LONGEST_WAIT_MS = 1_000;

/** One case's use of the store: a prefix that nobody else uses, and a clock. */
export class Trial {
  readonly prefix = `conformance-${crypto.randomUUID()}`;
  readonly store: Store;
  readonly options: ConformanceOptions;
  readonly #opened: { close(): Promise<void> }[] = [];

  constructor(store: Store, options: ConformanceOptions) {
    this.store = store;
    this.options = options;
  }

  get exact(): boolean {
    return this.store.capabilities.atomicity === "exact";
  }

  /** A window that does not move a budget while a case runs. */
  get longMs(): number {
    return Math.max(LONG_MS, this.store.capabilities.minTtlMs);
  }

  /** That window, or the shortest that the store can hold. */
  atLeast(ms: number): number {
    return Math.max(ms, this.store.capabilities.minTtlMs);
  }

  has(need: Need): boolean {
    switch (need) {
      case "exact":
        return this.exact;
      case "best-effort":
        return !this.exact;
      case "records":
        return this.#keepsRecords();
      case "five methods":
        return !this.#keepsRecords();
      case "advance":
        return this.options.advance !== undefined;
      case "wait":
        return (
          this.options.advance === undefined &&
          this.store.capabilities.minTtlMs <= LONGEST_WAIT_MS / 10
        );
      case "size":
        return this.options.size !== undefined;
    }
  }

  limiter(limit: LimitOptions | LimitOptions[], options: Partial<LimiterOptions> = {}): Limiter {
    return this.#open(new Limiter({ ...this.#common(), limit, ...this.#accepted(), ...options }));
  }

  deduplicator(options: Partial<DeduplicatorOptions> = {}): Deduplicator {
    const ttl = this.longMs;
    return this.#open(
      new Deduplicator({ ...this.#common(), ttl, lease: ttl, ...this.#accepted(), ...options }),
    );
  }

  detector(options: BurstDetectorOptions): BurstDetector {
    return this.#open(new BurstDetector({ ...this.#common(), ...options }));
  }

  /** Moves the store's clock. */
  async advance(ms: number): Promise<void> {
    if (ms > 0) await this.options.advance?.(ms);
  }

  async close(): Promise<void> {
    for (const opened of this.#opened) await opened.close();
    await this.store.close();
  }

  #common() {
    return { store: this.store, prefix: this.prefix, timeout: TIMEOUT_MS };
  }

  #accepted() {
    return this.exact ? {} : { bestEffort: true };
  }

  #open<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }

  /** A five-method store refuses a bucket when it is asked for one. */
  #keepsRecords(): boolean {
    try {
      this.limiter({ limit: 1, window: this.longMs });
      return true;
    } catch (error) {
      if (error instanceof TidegateError && error.code === "unsupported") return false;
      throw error;
    }
  }
}

/** Lets real time pass. Timers may be early by a part of a millisecond. */
export function pause(ms: number): Promise<void> {
  if (ms > LONGEST_WAIT_MS) throw new Error(`a case must not wait for ${ms} ms`);
  return new Promise((resolve) => setTimeout(resolve, ms + 2));
}

/** What a promise answers, unless it takes longer than that. */
export async function ends<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The outcome of as many calls at once. */
export function together<T>(count: number, call: (at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => call(at)));
}
