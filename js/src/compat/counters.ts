import { Limiter } from "../limiter.js";
import { checkOptions, type Duration, prefixOf } from "../options.js";
import { driverOf, type Store } from "../store.js";

export interface CompatOptions {
  /**
   * Namespaces the keys. Default: on a store that is shared by a fleet the framework's name; on one of this
   * process a name of its own for each, so that no two of them count on the same keys.
   */
  prefix?: string;
  /** Deadline of one hit. Default 500 ms. */
  timeout?: Duration;
  /** Accept a best-effort store. Without it: "unsupported". */
  bestEffort?: boolean;
}

/** The count of a limit that nobody reaches: the framework compares hits with a limit of its own. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;
/** Kept ready. A framework has a few; a limit or a window that is computed per request must not fill memory. */
const MAX_LIMITERS = 100;

let prefixes = 0;

/** The fixed windows of one framework's store: a Limiter for each limit and window that it names. */
export class Counters {
  readonly prefix: string;
  /** Whether nobody else shares what is counted. */
  readonly local: boolean;
  readonly #store: Store;
  readonly #options: CompatOptions;
  readonly #limiters = new Map<string, Limiter>();

  constructor(store: Store, framework: string, options: CompatOptions = {}) {
    driverOf(store);
    checkOptions(options, ["prefix", "timeout", "bestEffort"]);
    this.#store = store;
    this.#options = options;
    this.local = store.capabilities.scope === "process";
    this.prefix =
      options.prefix === undefined
        ? defaultPrefix(framework, this.local)
        : prefixOf(options.prefix);
    // What the store cannot do is to be refused now, and not on the first request.
    this.of(60_000);
  }

  /** The Limiter of a window; of one that is not kept any more a new one, with the same state. */
  of(windowMs: number, limit = UNLIMITED): Limiter {
    const name = `${limit}/${windowMs}`;
    let limiter = this.#limiters.get(name);
    if (limiter === undefined) {
      limiter = new Limiter({
        ...this.#options,
        limit: { algorithm: "fixed-window", limit, window: windowMs },
        store: this.#store,
        prefix: this.prefix,
      });
      if (this.#limiters.size >= MAX_LIMITERS) this.#dropOldest();
      this.#limiters.set(name, limiter);
    }
    return limiter;
  }

  async close(): Promise<void> {
    const limiters = [...this.#limiters.values()];
    this.#limiters.clear();
    await Promise.all(limiters.map((limiter) => limiter.close()));
  }

  #dropOldest(): void {
    const [oldest] = this.#limiters;
    if (oldest === undefined) return;
    this.#limiters.delete(oldest[0]);
    oldest[1].close().catch(() => {});
  }
}

function defaultPrefix(framework: string, local: boolean): string {
  if (!local) return framework;
  prefixes += 1;
  return `${framework}#${prefixes}`;
}

/** Whole seconds, as headers have them; never 0 for what is not over. */
export function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}
