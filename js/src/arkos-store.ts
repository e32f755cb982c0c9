import {
  ARKOS_METHODS,
  type ArkosGatewayStore,
  checkCounted,
  checkFlag,
  wrongAnswer,
} from "./arkos/gateway-store.js";
import { digest } from "./core.js";
import type { Decision } from "./decision.js";
import { show, TidegateError } from "./errors.js";
import { keysOf } from "./key.js";
import type { Limits } from "./limits.js";
import { MessageCall } from "./message-call.js";
import { bad, durationMs, textBytes } from "./options.js";
import {
  type BurstDriver,
  type Capabilities,
  DRIVER,
  type Driver,
  type LimitDriver,
  type MessageDriver,
  type MessageReply,
  type Store,
} from "./store.js";

/** Ids that a host's store is given as they are; any other is hashed. */
const PLAIN_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** Whether an adapter is meant as an ArkosGatewayStore. */
export function isArkosShaped(adapter: object): adapter is Partial<ArkosGatewayStore> {
  return !("compareAndSet" in adapter) && ("increment" in adapter || "setIfNotExists" in adapter);
}

/**
 * A host's store with Arkos' five methods: fixed windows whose calls cost 1, and `first` and `has` of
 * ids. It has no operation from which anything else could be made.
 */
export class ArkosStore implements Store {
  /** Everyone who shares the host's store shares the state; ids live for whole seconds there. */
  readonly capabilities: Capabilities = Object.freeze({
    atomicity: "exact",
    clock: "store",
    scope: "fleet",
    synchronous: false,
    minTtlMs: 1_000,
  });
  readonly [DRIVER]: ArkosDriver;

  constructor(arkos: Partial<ArkosGatewayStore>, storePrefix: string | undefined) {
    for (const method of ARKOS_METHODS) {
      if (typeof arkos[method] !== "function") {
        bad("bad_policy", `adapter.${method}`, arkos[method], "a method");
      }
    }
    this[DRIVER] = new ArkosDriver(arkos as ArkosGatewayStore, storePrefix);
  }

  /** The adapter is the caller's, and stays open. */
  async close(): Promise<void> {}
}

class ArkosDriver implements Driver {
  constructor(
    private readonly arkos: ArkosGatewayStore,
    private readonly storePrefix: string | undefined,
  ) {}

  limits(prefix: string, limits: Limits): LimitDriver {
    const { arkos } = this;
    const storeKey = keysOf(this.storePrefix, prefix, "l");
    const { limit, windowMs, name } = fixedWindow(limits);
    return {
      consume: async (key, cost) => {
        if (cost !== 1) throw unsupported("a cost above 1");
        const asked = Date.now();
        const { count, resetAt } = checkHit(await arkos.increment(storeKey(key), windowMs), asked);
        return decision(count, limit, Math.max(1, Math.ceil(resetAt - Date.now())), name);
      },
      peek: () => refuse("peek"),
      refund: () => refuse("refund"),
      block: () => refuse("block"),
      unblock: () => refuse("unblock"),
      reset: () => refuse("reset"),
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const { arkos } = this;
    const key = keysOf(this.storePrefix, prefix, "m");
    const storeKey = (id: string) => key(PLAIN_ID.test(id) ? id : `#${digest(textBytes(id))}`);
    return {
      first: async (id, ttlMs) => {
        const seconds = Math.ceil(ttlMs / 1_000);
        return checkFlag("setIfNotExists", await arkos.setIfNotExists(storeKey(id), seconds));
      },
      call: (id, call) => {
        if (call !== MessageCall.look()) return refuse("claim, commit, release and forget");
        return this.#look(storeKey(id));
      },
    };
  }

  bursts(): BurstDriver {
    throw unsupported("burst alarms");
  }

  async #look(storeKey: string): Promise<MessageReply> {
    const seen = checkFlag("has", await this.arkos.has(storeKey));
    return { status: seen ? "duplicate" : "absent", retryAfterMs: 0, result: undefined };
  }
}

/** The one limit, if it is one that counts as Arkos does. */
function fixedWindow({ options }: Limits): { limit: number; windowMs: number; name: string } {
  const [only] = options;
  if (only === undefined || options.length > 1) throw unsupported("several limits at once");
  const { algorithm = "leaky-bucket", limit, window, name = "default" } = only;
  if (algorithm !== "fixed-window") throw unsupported(`the algorithm ${show(algorithm)}`);
  return { limit, windowMs: durationMs(window, "window"), name };
}

/** A hit that the host counted: what is refused is counted too, which changes nothing until the window is over. */
function decision(count: number, limit: number, untilResetMs: number, name: string): Decision {
  const allowed = count <= limit;
  return {
    allowed,
    reason: allowed ? "ok" : "limited",
    limit,
    remaining: Math.max(0, limit - count),
    retryAfterMs: allowed ? 0 : untilResetMs,
    resetAfterMs: untilResetMs,
    limitName: name,
    local: false,
    dryRun: false,
  };
}

function checkHit(answer: unknown, asked: number): { count: number; resetAt: number } {
  const { count, resetAt } = checkCounted(answer);
  // An answer may be late; what was over before the question was asked is no window of this hit's.
  if (resetAt < asked) throw wrongAnswer("increment", "a resetAt that is not in the past", resetAt);
  return { count, resetAt };
}

function refuse(what: string): Promise<never> {
  return Promise.reject(unsupported(what));
}

function unsupported(what: string): TidegateError {
  const can =
    'an Arkos store can do one limit of algorithm "fixed-window" with a cost of 1, and first() and has() of ids';
  return new TidegateError("unsupported", `the store cannot do ${what}: ${can}`);
}
