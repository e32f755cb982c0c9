import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { ArkosStore, isArkosShaped } from "./arkos-store.js";
import { TidegateError } from "./errors.js";
import { bad, checkOptions, oneOf, prefixOf } from "./options.js";
import { type Capabilities, DRIVER, type Store } from "./store.js";
import { stores } from "./stores.js";
import { type Operations, WireDriver } from "./wire/driver.js";
import { textsOf } from "./wire/lines.js";
import type { Read } from "./wire/operation.js";
import { Replies } from "./wire/replies.js";

/**
 * Two methods: any database with a conditional write, synchronous or not. Keys are printable ASCII.
 * Values are printable ASCII of at most 512 characters, except a committed result, which adds its JSON.
 */
export interface CasAdapter {
  /** The text under the key; null and undefined both mean absent. */
  get(key: string): Promise<string | null> | string | null;
  /** Writes `next` only if the current value equals `expected` (null: only if absent). Answers whether it wrote. */
  compareAndSet(
    key: string,
    expected: string | null,
    next: string,
    ttlMs: number,
  ): Promise<boolean> | boolean;
  /** Not needed: what is over is replaced, and expires by its time to live. */
  delete?(key: string): Promise<void> | void;
  /** Milliseconds on the store's own clock, if it has one. */
  now?(): Promise<number> | number;
  /** Default "exact". */
  atomicity?: "exact" | "best-effort";
}

/**
 * A store of the host's own, by shape: a conditional write keeps every promise, Arkos' five methods keep
 * those of fixed windows and of ids that are seen once.
 *
 * @throws TidegateError "bad_policy" naming the method that is missing.
 */
export function storeFrom(
  adapter: CasAdapter | ArkosGatewayStore,
  options: { prefix?: string } = {},
): Store {
  checkOptions(options, ["prefix"]);
  const prefix = options.prefix === undefined ? undefined : prefixOf(options.prefix);
  if ((typeof adapter !== "object" && typeof adapter !== "function") || adapter === null) {
    bad("bad_policy", "adapter", adapter, "an object with get() and compareAndSet()");
  }
  if (isArkosShaped(adapter)) return new ArkosStore(adapter, prefix);
  for (const method of ["get", "compareAndSet"] as const) {
    if (typeof adapter[method] !== "function") {
      bad("bad_policy", `adapter.${method}`, adapter[method], "a method");
    }
  }
  if (adapter.now !== undefined && typeof adapter.now !== "function") {
    bad("bad_policy", "adapter.now", adapter.now, "a method that answers milliseconds");
  }
  const atomicity = oneOf(adapter.atomicity, "atomicity", ["exact", "best-effort"], "exact");
  return new CasStore(adapter, atomicity, prefix);
}

class CasStore implements Store {
  readonly capabilities: Capabilities;
  readonly [DRIVER]: WireDriver;

  constructor(
    adapter: CasAdapter,
    atomicity: Capabilities["atomicity"],
    storePrefix: string | undefined,
  ) {
    const clock = adapter.now === undefined ? "caller" : "store";
    this.capabilities = Object.freeze({
      atomicity,
      clock,
      scope: "fleet",
      synchronous: false,
      minTtlMs: 1,
    });
    this[DRIVER] = new WireDriver(new Swaps(adapter), storePrefix);
  }

  /** The adapter is the caller's, and stays open. */
  async close(): Promise<void> {}
}

/** How often a lost race is run again: whoever loses has seen somebody win, and the caller's deadline ends it earlier. */
const MOST_TRIES = 256;

/** Runs operations on records that an adapter holds: what to write, the core says. */
export class Swaps implements Operations {
  readonly isOne = false;
  readonly #adapter: CasAdapter;
  readonly #callersClock: boolean;

  constructor(adapter: CasAdapter) {
    this.#adapter = adapter;
    this.#callersClock = adapter.now === undefined;
    stores();
  }

  async add<T>(key: string, op: string, read: Read<T>): Promise<T> {
    const replies = new Replies(textsOf(await this.#swap(key, op, Date.now())), 1);
    return read(replies.next(), replies);
  }

  /** Reads, has the core step, and writes if nobody else wrote; again if somebody did. */
  async #swap(key: string, op: string, callersNow: number): Promise<string> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const record = await this.#get(key);
      const now = this.#callersClock ? callersNow : await this.#now();
      const { reply, next, ttlMs } = this.#plan(op, record, now);
      if (next === undefined || (await this.#write(key, record, next, ttlMs))) return reply;
    }
    throw new TidegateError("contention", "compare-and-set lost too many times");
  }

  #plan(op: string, record: string | null, now: number): Plan {
    const { core, exchange } = stores();
    const [ofOp, ofRecord] = exchange.give(op, record ?? undefined) as [number, number];
    const length = core.plan_step(ofOp, ofRecord, now, Number(this.#callersClock));
    const [ofNext, ttlMs] = exchange.numbers as unknown as [number, number];
    const next = ofNext < 0 ? undefined : exchange.answer(ofNext, length);
    return { reply: exchange.answer(length), next, ttlMs };
  }

  async #get(key: string): Promise<string | null> {
    const record = (await settled(() => this.#adapter.get(key))) ?? null;
    if (record === null || typeof record === "string") return record;
    throw nonsense("get() must answer a string, null or undefined");
  }

  async #write(
    key: string,
    expected: string | null,
    next: string,
    ttlMs: number,
  ): Promise<boolean> {
    const wrote = await settled(() => this.#adapter.compareAndSet(key, expected, next, ttlMs));
    if (typeof wrote === "boolean") return wrote;
    throw nonsense("compareAndSet() must answer true or false");
  }

  async #now(): Promise<number> {
    const now = await settled(() => this.#adapter.now?.());
    if (typeof now === "number" && now >= 0 && now <= Number.MAX_SAFE_INTEGER) return now;
    throw nonsense("now() must answer milliseconds");
  }
}

/** What the core makes of an operation: the reply, and what is to be written before it is true. */
interface Plan {
  readonly reply: string;
  readonly next: string | undefined;
  readonly ttlMs: number;
}

/** Methods are called on the adapter itself; what they throw is the store's failure. */
async function settled<T>(call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    const detail = cause instanceof Error ? `: ${cause.message}` : "";
    throw new TidegateError("store", `the store failed${detail}`, { cause });
  }
}

function nonsense(what: string): TidegateError {
  return new TidegateError("store", `the store answered nonsense: ${what}`);
}
