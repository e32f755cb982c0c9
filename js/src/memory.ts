import { core, exchange } from "./core.js";
import { storeFull, TidegateError } from "./errors.js";
import type { MessageCall } from "./message-call.js";
import { replyOf } from "./message-reply.js";
import type { MessageReply, Observation } from "./store.js";
import type { Question } from "./tiers/question.js";
import { freedBy } from "./wasm/freed.js";

/** The core's "no slot", "stale", "whatever is there", and "no such store". */
export const NOTHING = -1;
/** The core's "there is no room for a new key". */
const FULL = -2;

const tables = /* @__PURE__ */ freedBy((number) => core.free_tables(number));

/** The tables of a MemoryStore, by the number under which the core finds them: what numbers alone do not say. */
export class Memory {
  readonly number: number;
  #isFree = false;

  constructor(mostKeys: number, mostResultBytes: number, share: boolean) {
    this.number = core.tables(mostKeys, mostResultBytes, Number(share));
    tables.register(this, this.number, this);
  }

  /** Its number may be another's from then on. */
  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    tables.unregister(this);
    core.free_tables(this.number);
  }

  /** Where the block of numbers is. */
  out(): number {
    return core.out(this.number) >>> 0;
  }

  /** Makes a Limiter's limits known. */
  register(words: string): number {
    const limiter = core.register(this.number, exchange.text(words));
    if (limiter < 0) throw coreError(limiter);
    return limiter;
  }

  /** Answers a tier's question; the block holds the key's slot. */
  ask(
    limiter: number,
    slot: number,
    generation: number,
    question: Question,
    now: number,
  ): ArrayLike<number> | undefined {
    exchange.numbers.set(question);
    const count = core.ask(this.number, limiter, slot, generation, now);
    if (count < 0) throw coreError(count);
    return count === 0 ? undefined : exchange.numbers.slice(0, count);
  }

  /** The work under a numbered token is done: 1, or 0 when the claim was lost; NOTHING when the slot is not the id's. */
  commit(
    slot: number,
    generation: number,
    token: number,
    ttlMs: number,
    json: string | undefined,
    now: number,
  ): number {
    const result = json === undefined ? -1 : exchange.text(json);
    return core.commit(this.number, slot, generation, token, ttlMs, result, now);
  }

  /** Runs an operation on an id; the block holds the id's slot. */
  message(slot: number, generation: number, call: MessageCall, now: number): MessageReply {
    const status = core.message(this.number, slot, generation, exchange.text(call), now);
    const reply = replyOf(status, exchange);
    if (reply === undefined) throw coreError(status);
    return reply;
  }

  /** Counts an observation, in the wire's words; the block holds the identity's slot. */
  observe(slot: number, generation: number, words: string, now: number): Observation {
    const told = core.observe(this.number, slot, generation, exchange.text(words), now);
    if (told < 0) throw coreError(told);
    const numbers = exchange.numbers as unknown as [number, number, number, number];
    const [fired, count, windowEndsInMs, replay] = numbers;
    return { fired: fired === 1, count, windowEndsInMs, replay: replay === 1 };
  }
}

/** What a negative answer of the core means. */
export function coreError(code: number): TidegateError {
  if (code === FULL) return storeFull();
  if (code === NOTHING) return new TidegateError("closed", "the store went with its Limiter");
  return new TidegateError("store", "the core cannot read what it was asked");
}
