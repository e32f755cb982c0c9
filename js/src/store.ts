import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import type { Decision } from "./decision.js";
import { show, TidegateError } from "./errors.js";
import type { Limits } from "./limits.js";
import type { MessageCall } from "./message-call.js";
import type { DecisionCounter } from "./metrics.js";
import { bad } from "./options.js";
import type { Answer } from "./pending.js";
import type { Question } from "./tiers/question.js";

/** What a store can promise. */
export interface Capabilities {
  /** "exact": one winner per race over everyone who shares the store. "best-effort": races may be lost. */
  readonly atomicity: "exact" | "best-effort";
  /** Whose clock decides. */
  readonly clock: "store" | "caller";
  /** Who shares the state. */
  readonly scope: "process" | "fleet";
  readonly synchronous: boolean;
  readonly minTtlMs: number;
}

/** Opaque: built by one of the store classes, or by storeFrom(). */
export interface Store {
  readonly capabilities: Capabilities;
  close(): Promise<void>;
}

/** The drivers behind a store: they carry operations to where records are kept, and decide nothing. */
export const DRIVER: unique symbol = Symbol("tidegate.driver");

/** `timeoutMs` is how long the user of an asynchronous driver waits for an answer. */
export interface Driver {
  /** Whether calls that are made one after the other may be under way together: on one key they keep their order. */
  readonly pipelines?: boolean;
  limits(prefix: string, limits: Limits, timeoutMs: number): LimitDriver;
  messages(prefix: string, timeoutMs: number): MessageDriver;
  bursts(prefix: string, timeoutMs: number): BurstDriver;
  /** Arkos' five methods, where keys can be cleared by what they begin with. */
  asArkos?(): ArkosGatewayStore;
  /** Leaves nothing in this process that others have to know of, where a store keeps such. */
  readonly settle?: (() => Promise<void>) | undefined;
}

/** The operations on limits, bound to one Limiter. */
export interface LimitDriver {
  /** Decides without asking the store, where that can be. */
  atOnce?(key: string, cost: number): Decision | undefined;
  consume(key: string, cost: number): Answer<Decision>;
  /** Answers a tier's question in the core's numbers; where the store has no such operation, it is left out. */
  ask?(key: string, question: Question): Answer<ArrayLike<number> | undefined>;
  peek(key: string, cost: number): Answer<Decision>;
  refund(key: string, cost: number): Answer<void>;
  block(key: string, durationMs: number): Answer<void>;
  unblock(key: string): Answer<void>;
  reset(key: string): Answer<void>;
  close(): Answer<void>;
}

/** A driver whose answers are there at once. */
export interface SyncLimitDriver extends LimitDriver {
  consume(key: string, cost: number): Decision;
  peek(key: string, cost: number): Decision;
  handle(key: string, owner: HandleOwner): Handle;
}

/** A key made ready once. */
export interface Handle {
  /** The hot path: no string, no allocation. True when admitted and charged. */
  tryConsume(cost?: number): boolean;
  /** As Limiter.consumeSync. */
  consume(cost?: number): Decision;
}

/** The Limiter that a handle belongs to, as far as a handle needs it. */
export interface HandleOwner {
  closed: boolean;
  readonly dryRun: boolean;
  readonly counts: DecisionCounter;
  tell(key: string, decision: Decision): Decision;
}

/** What the core tells of an id. */
export interface MessageReply {
  readonly status: "yes" | "no" | "absent" | "fresh" | "mismatch" | "in-progress" | "duplicate";
  readonly retryAfterMs: number;
  readonly result: string | null | undefined;
}

export interface MessageDriver {
  /** Where it is not the call of that name: the store has a way of its own. */
  first?(id: string, ttlMs: number): Answer<boolean>;
  /** `sender`: whose id it is, where nobody may fill a bounded store alone. */
  call(id: string, call: MessageCall, sender?: string): Answer<MessageReply>;
  /**
   * A claim in the same call to the store as the decision that was asked for just before it, and only if that admits;
   * otherwise a look. Where another call came in between, it is that one's decision: who asks has to give back what
   * it should not have.
   */
  admit?(id: string, token: string, leaseMs: number): Answer<MessageReply>;
  /** Whether the store can do that now. */
  readonly admits?: boolean;
}

/** A claim in memory: the number that is its token, and where the id is. */
export interface Claimed {
  readonly token: number;
  readonly slot: number;
  readonly generation: number;
}

/** A driver whose answers are there at once. */
export interface SyncMessageDriver extends MessageDriver {
  first(id: string, ttlMs: number): boolean;
  call(id: string, call: MessageCall, sender?: string): MessageReply;
  /** Undefined when the id is taken or done. */
  claim(id: string, leaseMs: number, sender?: string): Claimed | undefined;
  /** False when the claim was lost to another. */
  commit(id: string, claimed: Claimed, ttlMs: number, json: string | undefined): boolean;
}

/** What one observation of an identity answers. */
export interface Observation {
  /** True for exactly one observation per (window, identity) in the whole fleet. */
  readonly fired: boolean;
  readonly count: number;
  readonly windowEndsInMs: number;
  /** True when this nonce already fired: told again, not counted again. */
  readonly replay: boolean;
}

export interface BurstDriver {
  /** Counts an observation, which is in the wire's words. */
  observe(identity: string, words: string): Answer<Observation>;
}

interface Driven extends Store {
  readonly [DRIVER]: Driver;
}

/** The driver of a store; "bad_policy" for what is not one of ours. */
export function driverOf(store: unknown, option = "store"): Driver {
  const driver = (store as Driven | null | undefined)?.[DRIVER];
  if (driver === undefined) {
    bad(
      "bad_policy",
      `option "${option}"`,
      store,
      "a store of this package; storeFrom() makes one of your own",
    );
  }
  return driver;
}

/** Refuses a store that loses races, unless its user accepted that. */
export function requireExact(store: Store, accepted: boolean, promise: string): void {
  if (store.capabilities.atomicity === "exact" || accepted) return;
  throw new TidegateError(
    "unsupported",
    `the store is best-effort and cannot honour ${promise}; pass bestEffort: true to accept that (bestEffort is ${show(accepted)})`,
  );
}
