import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { ArkosStore, isArkosShaped } from "./arkos-store.js";
import { type ErrorCode, TidegateError } from "./errors.js";
import { bad, checkOptions, oneOf, prefixOf } from "./options.js";
import { type Capabilities, DRIVER, type Store } from "./store.js";
import { stores } from "./stores.js";
import { run_operation } from "./wasm/gen/glue.js";
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

/** Runs operations on records that an adapter holds: the core reads, steps and writes by itself. */
export class Swaps implements Operations {
  readonly isOne = false;
  readonly #adapter: CasAdapter;

  constructor(adapter: CasAdapter) {
    this.#adapter = adapter;
    stores();
  }

  async add<T>(key: string, op: string, read: Read<T>): Promise<T> {
    const reply = await run_operation(this.#adapter, key, op, Date.now()).catch(refuse);
    const replies = new Replies(textsOf(reply), 1);
    return read(replies.next(), replies);
  }
}

/** What the core throws. */
interface Fault {
  readonly code: ErrorCode;
  readonly message: string;
  readonly cause?: unknown;
}

function refuse(fault: Fault): never {
  const { code, message, cause } = fault;
  const detail = cause instanceof Error ? `: ${cause.message}` : "";
  throw new TidegateError(code, message + detail, "cause" in fault ? { cause } : undefined);
}
