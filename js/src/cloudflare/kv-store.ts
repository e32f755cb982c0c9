import { waitUntil as waitUntilOfWorkers } from "#workers";
import { Swaps } from "../cas-store.js";
import { show, TidegateError } from "../errors.js";
import { keysOf } from "../key.js";
import type { LimitOptions, Limits } from "../limits.js";
import { bad, checkOptions, durationMs, functionOf, prefixOf } from "../options.js";
import {
  type Capabilities,
  DRIVER,
  type Driver,
  type LimitDriver,
  type MessageDriver,
  type Store,
} from "../store.js";
import { WireDriver } from "../wire/driver.js";
import { type KvNamespace, KvRecords } from "./kv-records.js";

export interface KvStoreOptions {
  /** Before the prefixes of whoever uses the store. */
  prefix?: string;
  /**
   * Keeps the Worker running until a promise has settled, though the answer is sent: writes to KV are behind it.
   * Default: `waitUntil` of "cloudflare:workers".
   */
  waitUntil?: (promise: Promise<unknown>) => void;
}

/** KV refuses to expire anything sooner. */
const MIN_TTL_MS = 60_000;
const MAX_KEY_BYTES = 512;
/** The core hashes what is longer. */
const LONGEST_KEY = "k".repeat(200);

/**
 * Workers KV: eventually consistent and without a conditional write, so limits and ids are best-effort and no bound
 * is claimed; `bestEffort: true` is asked of whoever uses it. Good for deny lists, for hints that an id was seen, and
 * for soft limits.
 *
 * One isolate counts exactly: a record that it changed is in its memory, is written behind the answer, once a second
 * at most, and is believed for a minute after that, as long as KV itself may still tell what was there before. Other
 * isolates and locations see it after up to a minute, and the last one to write wins. A write that fails (a 429,
 * say) is told as a "store-error" event and tried again; nothing that was counted is lost while the isolate lives.
 * At most 16 MiB are held so: what was written goes first, and where nothing was, a call on another key waits for a
 * write of its own and fails with it.
 *
 * @example
 * const store = new KvStore(env.KV);
 * const denied = new Limiter({ prefix: "deny", limit: { limit: 1, window: "1m" }, store, bestEffort: true });
 * await denied.block("203.0.113.9", "1d");
 * const { reason } = await denied.peek("203.0.113.9"); // "blocked", elsewhere after up to a minute
 */
export class KvStore implements Store {
  readonly capabilities: Capabilities = Object.freeze({
    atomicity: "best-effort",
    clock: "caller",
    scope: "fleet",
    synchronous: false,
    minTtlMs: MIN_TTL_MS,
  });
  readonly [DRIVER]: KvDriver;

  constructor(namespace: unknown, options: KvStoreOptions = {}) {
    checkOptions(options, ["prefix", "waitUntil"]);
    const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
    const waitUntil = functionOf(options.waitUntil, "waitUntil") ?? waitUntilOfWorkers;
    if (waitUntil === undefined) {
      bad("bad_policy", 'option "waitUntil"', waitUntil, "given: this runtime has none by itself");
    }
    this[DRIVER] = new KvDriver(new KvRecords(namespaceOf(namespace), waitUntil), prefix);
  }

  /** Writes what is not written yet, a second after the last write of its key. The namespace stays open. */
  async close(): Promise<void> {
    await this[DRIVER].settle();
  }
}

function namespaceOf(namespace: unknown): KvNamespace {
  const { get, put } = (namespace ?? {}) as Partial<KvNamespace>;
  if (typeof get === "function" && typeof put === "function") return namespace as KvNamespace;
  bad("bad_policy", "namespace", namespace, "a binding to a KV namespace");
}

/** The core's read, step and write, on records that KV holds. */
class KvDriver extends WireDriver implements Driver {
  readonly settle: () => Promise<void>;
  readonly #prefix: string | undefined;

  constructor(records: KvRecords, prefix: string | undefined) {
    super(new Swaps(records), prefix);
    this.settle = () => records.settle();
    this.#prefix = prefix;
  }

  override limits(prefix: string, limits: Limits): LimitDriver {
    checkWindows(limits.options);
    this.#checkLength(prefix);
    return super.limits(prefix, limits);
  }

  override messages(prefix: string): MessageDriver {
    this.#checkLength(prefix);
    return super.messages(prefix);
  }

  #checkLength(prefix: string): void {
    if (keysOf(this.#prefix, prefix, "l")(LONGEST_KEY).length <= MAX_KEY_BYTES) return;
    const expected = `short enough for a key of KV, which has ${MAX_KEY_BYTES} bytes`;
    bad("bad_policy", 'option "prefix"', prefix, expected);
  }
}

/** What is counted in less time than a write takes to be seen is not counted together. */
function checkWindows(limits: readonly LimitOptions[]): void {
  for (const [at, { window }] of limits.entries()) {
    if (durationMs(window, "window") >= MIN_TTL_MS) continue;
    const place = limits.length > 1 ? `limit[${at}].` : "";
    const text = `option "${place}window" must be at least 60 s on Workers KV, but is ${show(window)}`;
    throw new TidegateError("unsupported", text);
  }
}
