import { stores } from "../stores.js";
import { freedBy } from "../wasm/freed.js";
import type { Question } from "./question.js";

/** In place of a slot, a decision or a question: none. */
export const NONE = -1;

export type Mode = "deny-cache" | "lease" | "eager";
const MODES = ["deny-cache", "lease", "eager"] as const;

/** A question to the shared store. What comes of it has to be told to the tier, once. */
export interface TierAsk {
  readonly number: number;
  /** Whose limits it is about. */
  readonly limiter: number;
  /** The key's slot, or NONE. */
  readonly slot: number;
  readonly question: Question;
}

/** Of the block: whose limits, which slot, and the numbers of a question. */
const QUESTION_AT = 2;
const QUESTION_END = 9;

const tiers = /* @__PURE__ */ freedBy((tier) => stores().core.free_tier(tier));

/** The first of two tiers: what it may decide by itself. */
export class FirstTier {
  readonly #core = stores().core;
  readonly #exchange = stores().exchange;
  readonly #tier: number;
  readonly #out: number;
  #numbers: Float64Array;

  /** `most` is the largest share, or the most units that may be unsynced. */
  constructor(
    mode: Mode,
    most: number,
    syncEveryMs: number,
    mostKeys: number,
    callersClock: boolean,
  ) {
    const clock = Number(callersClock);
    this.#tier = this.#core.tier(MODES.indexOf(mode), most, syncEveryMs, mostKeys, clock);
    tiers.register(this, this.#tier);
    this.#out = this.#core.tier_out(this.#tier);
    this.#numbers = new Float64Array(this.#core.memory.buffer, this.#out, 8);
  }

  /** The block in which the core tells numbers; memory that grew has left the old view without a buffer. */
  get numbers(): Float64Array {
    if (this.#numbers.length === 0) {
      this.#numbers = new Float64Array(this.#core.memory.buffer, this.#out, 8);
    }
    return this.#numbers;
  }

  /** Makes a Limiter's limits known; `node` is nobody else's. */
  register(words: string, node: number): number {
    return this.#core.tier_register(this.#tier, this.#exchange.text(words), node);
  }

  /** The reason, with the decision in the block, if it can be decided here; else NONE. */
  decide(limiter: number, slot: number, cost: number, now: number): number {
    return this.#core.tier_decide(this.#tier, limiter, slot, cost, now);
  }

  /** That Limiter is closed, and all of its keys are forgotten. */
  release(limiter: number): void {
    this.#core.tier_release(this.#tier, limiter);
  }

  /** The Limiter of that key is closed. */
  forget(slot: number): void {
    this.#core.tier_forget(this.#tier, slot);
  }

  /** What is to be done for a call that cannot be decided here; the block holds the key's slot. */
  ask(limiter: number, slot: number, cost: number, now: number): number {
    return this.#core.tier_ask(this.#tier, limiter, slot, cost, now);
  }

  /** What the last call wants to have asked. */
  question(): TierAsk | undefined {
    return this.#asked(this.#core.tier_question(this.#tier));
  }

  /** What the shared store answered, in numbers; nothing of what it was only told. */
  told({ number }: TierAsk, numbers: readonly number[], now: number): void {
    this.#exchange.numbers.set(numbers);
    this.#core.tier_told(this.#tier, number, numbers.length, now);
  }

  /** It did not answer. */
  failed({ number }: TierAsk): void {
    this.#core.tier_failed(this.#tier, number);
  }

  /** This process gives units back itself. */
  refunded(slot: number): void {
    this.#core.tier_refunded(this.#tier, slot);
  }

  /** This process blocks the key itself. */
  blocked(slot: number, now: number): void {
    this.#core.tier_blocked(this.#tier, slot, now);
  }

  /** This process resets the key itself. */
  reset(slot: number): void {
    this.#core.tier_reset(this.#tier, slot);
  }

  /** The next question that is due, if there is one. */
  due(now: number): TierAsk | undefined {
    return this.#asked(this.#core.tier_due(this.#tier, now));
  }

  /** When something will be due; NaN for never. */
  dueAt(): number {
    return this.#core.tier_due_at(this.#tier);
  }

  /** The next question that leaves nothing of the key here. */
  settle(slot: number, now: number): TierAsk | undefined {
    return this.#asked(this.#core.tier_settle(this.#tier, slot, now));
  }

  /** A slot for which something is left to settle, or NONE; of that Limiter, or with NONE of any. */
  unsettled(limiter: number): number {
    return this.#core.tier_unsettled(this.#tier, limiter);
  }

  /** Whose key has that slot, or NONE. */
  limiterOf(slot: number): number {
    return this.#core.tier_limiter_of(this.#tier, slot);
  }

  /** A slot freed since last asked, or NONE. */
  freed(): number {
    return this.#core.tier_freed(this.#tier);
  }

  /** The most that so many nodes can admit above the limit in one window. */
  overAdmissionBound(words: string, nodes: number): number {
    return this.#core.tier_bound(this.#tier, this.#exchange.text(words), nodes);
  }

  #asked(number: number): TierAsk | undefined {
    if (number === NONE) return undefined;
    const [limiter, slot] = this.#exchange.numbers as unknown as [number, number];
    const question = [...this.#exchange.numbers.subarray(QUESTION_AT, QUESTION_END)];
    return { number, limiter, slot, question };
  }
}
