import { TidegateError } from "./errors.js";
import { type LimitOptions, limitsFrom } from "./limits.js";
import {
  bad,
  checkOptions,
  countOf,
  type Duration,
  durationMs,
  MAX_TIMEOUT_MS,
  oneOf,
} from "./options.js";
import { type Capabilities, DRIVER, driverOf, type Store } from "./store.js";
import { TieredDriver } from "./tiers/driver.js";

export interface TieredStoreOptions {
  /** The store that is shared. */
  l2: Store;
  /**
   * "deny-cache" (default): l2 decides; this process remembers only denials and ids that it finished itself.
   * "lease": it spends budget reserved from l2. "eager": it decides at once, and l2 is told behind it.
   */
  mode?: "deny-cache" | "lease" | "eager";
  /** eager: the most units of a key that l2 does not know of. Default 10. A cost above it goes to l2 at once. */
  maxUnsynced?: number;
  /** eager: how long it may take until l2 knows: at most 2^31 - 1 ms. Default 100 ms. */
  syncEvery?: Duration;
  /** lease: the largest share, at most an eighth of the capacity, which is the default. */
  leaseUnits?: number;
  /** The most keys, and the most ids, that are remembered here. Default 100 000. Beyond them l2 decides. */
  maxKeys?: number;
}

const KNOWN = ["l2", "mode", "maxUnsynced", "syncEvery", "leaseUnits", "maxKeys"];
const MODES = ["deny-cache", "lease", "eager"] as const;
const DEFAULT_MAX_UNSYNCED = 10;
const DEFAULT_SYNC_MS = 100;
const DEFAULT_MAX_KEYS = 100_000;
const MOST_KEYS = 2 ** 31;

/**
 * This process in front of a shared store, with a bound on what that can cost.
 *
 * What a process remembers of denials and ids, and that it may spend a share, it believes for at most a second,
 * which is how late it sees a change of another process; a mirror until its next question. Its own changes count
 * at once.
 *
 * @example
 * const store = new TieredStore({ l2: new RedisStore(redis), mode: "lease" });
 * const limit = { limit: 6_000, window: "1m" };
 * const limiter = new Limiter({ limit, store });
 * store.overAdmissionBound(limit, 8); // 6 000: eight times a share of an eighth
 */
export class TieredStore implements Store {
  readonly capabilities: Capabilities;
  readonly [DRIVER]: TieredDriver;
  /** @internal */
  readonly l2: Store;

  constructor(options: TieredStoreOptions) {
    checkOptions(options, KNOWN);
    const l2 = driverOf(options.l2, "l2");
    const { capabilities } = options.l2;
    const mode = oneOf(options.mode, "mode", MODES, "deny-cache");
    if (mode !== "deny-cache" && capabilities.atomicity !== "exact") {
      const why = `mode "${mode}" needs a store that is exact, but this l2 is best-effort: no bound would hold`;
      throw new TidegateError("unsupported", why);
    }
    const { maxUnsynced = DEFAULT_MAX_UNSYNCED, leaseUnits = Number.MAX_SAFE_INTEGER } = options;
    const most = {
      unsynced: countOf(maxUnsynced, "maxUnsynced"),
      leased: countOf(leaseUnits, "leaseUnits"),
      keys: countOf(options.maxKeys ?? DEFAULT_MAX_KEYS, "maxKeys", MOST_KEYS),
    };
    const syncEvery = options.syncEvery ?? DEFAULT_SYNC_MS;
    const syncMs = durationMs(syncEvery, 'option "syncEvery"', "bad_policy", MAX_TIMEOUT_MS);
    this.l2 = options.l2;
    this.capabilities = Object.freeze({ ...capabilities, synchronous: false });
    this[DRIVER] = new TieredDriver(l2, mode, most, syncMs, capabilities.clock === "caller");
  }

  /**
   * The most that `nodes` nodes can admit above the limit in one window. A number, never "some". A node is a
   * Limiter: two of the same limit in one process count as two.
   *
   * "deny-cache": 0, since l2 decides on all that is admitted. "lease": 0 in windows, where a share is spent in
   * the window it was charged in; nodes × the largest share for buckets, which leak while shares are held.
   * "eager": (nodes − 1) × maxUnsynced, which is all that a node that admits cannot see.
   */
  overAdmissionBound(limit: LimitOptions, nodes: number): number {
    if (Array.isArray(limit)) bad("bad_argument", "limit", limit, "one limit");
    if (!Number.isSafeInteger(nodes) || nodes < 1) {
      bad("bad_argument", "nodes", nodes, "a positive safe integer");
    }
    if (this.capabilities.atomicity !== "exact") {
      throw new TidegateError("unsupported", "l2 is best-effort: no bound is claimed");
    }
    return this[DRIVER].bound(limitsFrom(limit, "bad_argument"), nodes);
  }

  /** Tells l2 what it does not know, and gives back what was not spent. l2 itself stays open. */
  async close(): Promise<void> {
    await this[DRIVER].settle?.();
  }
}
