import { type BurstSet, Cas } from "#wasm";
import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { ArkosStore, isArkosShaped } from "./arkos-store.js";
import { type Decision, decisionFrom } from "./decision.js";
import { keysOf } from "./key.js";
import type { Limits } from "./limits.js";
import { bad, checkOptions, oneOf, prefixOf } from "./options.js";
import {
  type BurstDriver,
  type Capabilities,
  DRIVER,
  type Driver,
  type LimitDriver,
  type MessageDriver,
  type MessageReply,
  type Observation,
  type Store,
} from "./store.js";

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
  readonly [DRIVER]: CasDriver;

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
    this[DRIVER] = new CasDriver(new Cas(adapter), storePrefix);
  }

  /** The adapter is the caller's, and stays open. */
  async close(): Promise<void> {}
}

/** Hands operations to the core, which reads, steps and writes by itself. */
export class CasDriver implements Driver {
  constructor(
    private readonly cas: Cas,
    private readonly storePrefix: string | undefined,
  ) {}

  limits(prefix: string, { set, names }: Limits): LimitDriver {
    const { cas } = this;
    const storeKey = keysOf(this.storePrefix, prefix, "l");
    const decided = async (numbers: Promise<unknown>): Promise<Decision> => {
      const told = (await numbers) as Float64Array;
      return decisionFrom(told[0] as number, told, 1, names);
    };
    return {
      consume: (key, cost) => decided(cas.consume(storeKey(key), set, cost, Date.now())),
      peek: (key, cost) => decided(cas.peek(storeKey(key), set, cost, Date.now())),
      refund: (key, cost) => cas.refund(storeKey(key), set, cost, Date.now()) as Promise<void>,
      ask: (key, ask) =>
        cas.ask(storeKey(key), set, ask, Date.now()) as Promise<Float64Array | undefined>,
      block: (key, durationMs) => cas.block(storeKey(key), durationMs, Date.now()) as Promise<void>,
      unblock: (key) => cas.unblock(storeKey(key), Date.now()) as Promise<void>,
      reset: (key) => cas.reset(storeKey(key), set, Date.now()) as Promise<void>,
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const storeKey = keysOf(this.storePrefix, prefix, "m");
    return {
      call: (id, message) =>
        this.cas.message(storeKey(id), message, Date.now()) as Promise<MessageReply>,
    };
  }

  bursts(prefix: string): BurstDriver {
    const storeKey = keysOf(this.storePrefix, prefix, "b");
    return {
      observe: (identity, policy: BurstSet, weight, nonce) =>
        this.cas.observe(
          storeKey(identity),
          policy,
          weight,
          nonce,
          Date.now(),
        ) as Promise<Observation>,
    };
  }
}
