import { Carried, Patience } from "../carried.js";
import { Deadlines } from "../deadlines.js";
import { type Decision, decisionFrom, REASONS } from "../decision.js";
import { limiterClosed } from "../errors.js";
import type { Limits } from "../limits.js";
import { monotonicNow } from "../monotonic.js";
import { type Answer, promised } from "../pending.js";
import type { PrefixIndex } from "../slot-index.js";
import type { LimitDriver } from "../store.js";
import type { TierAsk } from "../wasm/gen/glue.js";
import { NONE, type TieredDriver } from "./driver.js";
import { plainCost } from "./question.js";

/** What the core wants done for a call that it cannot decide by itself. */
const ASK = 0;
const WAIT = 2;
/** Where in the block of numbers a slot is told. */
const SLOT = 6;

/** What was sent and may have been lost, what came after it, and a share in two portions. */
const MOST_ROUNDS = 4;

type Told = Decision | ArrayLike<number> | undefined;

/** The limits of one Limiter: decided here where the core can, else carried to l2 and back. */
export class TieredLimits implements LimitDriver {
  readonly names: readonly string[];
  /** Its number in the core. */
  readonly limiter: number;
  readonly prefix: string;
  readonly indexName: string;
  readonly #driver: TieredDriver;
  readonly #l2: LimitDriver;
  readonly #index: PrefixIndex;
  /** Itself and the others of its prefix. */
  readonly #sharing: Set<TieredLimits>;
  /** Those of them, itself too, with a budget that is also this one's. */
  readonly #alike = new Set<TieredLimits>();
  readonly #deadlines: Deadlines;
  /** Who waits until l2 has answered about a slot. */
  readonly #waiting = new Map<number, (() => void)[]>();
  /** Questions under way, by slot. */
  readonly #underWay = new Map<number, number>();
  /** What comes of each of them. */
  readonly #open = new Set<Promise<Told>>();
  #isClosed = false;

  constructor(
    driver: TieredDriver,
    l2: LimitDriver,
    limits: Limits,
    prefix: string,
    sharing: Set<TieredLimits>,
    timeoutMs: number,
  ) {
    this.#driver = driver;
    this.#l2 = l2;
    this.#sharing = sharing;
    this.#deadlines = new Deadlines(timeoutMs);
    this.names = limits.names;
    this.prefix = prefix;
    sharing.add(this);
    this.#meet();
    const node = crypto.getRandomValues(new Uint32Array(1))[0] as number;
    this.limiter = driver.tier.register(limits.words, node);
    this.indexName = `${this.limiter}:${prefix}`;
    this.#index = driver.index.of(this.indexName);
  }

  atOnce(key: string, cost: number): Decision | undefined {
    this.#driver.asks(false);
    const slot = this.#slotOf(key);
    if (slot === undefined) return undefined;
    const { tier, chores } = this.#driver;
    const reason = tier.decide(this.limiter, slot, cost, monotonicNow());
    if (reason === NONE) return undefined;
    const decision = decisionFrom(reason, this.#driver.numbers, 0, this.names, true);
    const ahead = tier.question();
    if (ahead !== undefined) chores.ask(ahead);
    chores.plan();
    return decision;
  }

  async consume(key: string, cost: number): Promise<Decision> {
    const patience = new Patience(this.#deadlines);
    try {
      return await this.#consume(key, cost, patience);
    } finally {
      patience.end();
    }
  }

  /** What l2 is told of first: a peek sees everything that was admitted. */
  async peek(key: string, cost: number): Promise<Decision> {
    if (this.#driver.mode === "eager") await this.#settle(key);
    return promised(this.#l2.peek(key, cost));
  }

  /** Of what was admitted here too, so that is told first. */
  refund(key: string, cost: number): Promise<void> {
    const change = () => this.#l2.refund(key, cost);
    return this.#changing(key, change, (limits) => limits.#refunded(key), [this]);
  }

  block(key: string, durationMs: number): Promise<void> {
    const change = () => this.#l2.block(key, durationMs);
    return this.#changing(key, change, (limits) => limits.#blocked(key));
  }

  unblock(key: string): Promise<void> {
    const change = () => this.#l2.unblock(key);
    return this.#changing(key, change, (limits) => limits.#refunded(key));
  }

  /** What was admitted before is told before; others keep their shares of budgets of other names. */
  reset(key: string): Promise<void> {
    const change = () => this.#l2.reset(key);
    const forget = (limits: TieredLimits) =>
      this.#alike.has(limits) ? limits.#reset(key) : limits.#refunded(key);
    return this.#changing(key, change, forget, this.#alike);
  }

  async close(): Promise<void> {
    await this.#quiet();
    await this.#driver.chores.settle(this.limiter);
    await this.#quiet();
    this.#isClosed = true;
    this.#sharing.delete(this);
    for (const limits of this.#alike) limits.#alike.delete(this);
    this.#driver.release(this);
    await this.#l2.close();
  }

  /** Takes a question to l2, and what comes of it to the core. */
  carry(ask: TierAsk, key = this.#driver.keys.get(ask.slot()) as string): Promise<Told> {
    const slot = ask.slot();
    this.#underWay.set(slot, (this.#underWay.get(slot) ?? 0) + 1);
    const carried = Carried.ask(() => this.#put(key, ask), this.#deadlines, {
      told: (told) => {
        this.#driver.tier.told(ask, this.#numbersOf(told), monotonicNow());
        this.#wake(slot);
      },
      failed: () => {
        this.#driver.tier.failed(ask);
        this.#wake(slot);
      },
    });
    this.#open.add(carried);
    const ended = () => this.#open.delete(carried);
    carried.then(ended, ended);
    return carried;
  }

  /** Waits until the questions that are under way now, and no others, have been answered, or given up. */
  async heardOut(): Promise<void> {
    await Promise.allSettled(this.#open);
  }

  /** Carries the questions that leave nothing of a slot here, but not what calls add to it meanwhile. */
  async settleAt(slot: number): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const ask = this.#driver.tier.settle(slot, monotonicNow());
      if (ask !== undefined) await this.carry(ask);
      else if (this.#underWay.has(slot)) await this.#heard(slot);
      else return;
    }
  }

  async #consume(key: string, cost: number, patience: Patience): Promise<Decision> {
    for (;;) {
      if (this.#isClosed) throw limiterClosed();
      const known = this.#slotOf(key);
      const { tier } = this.#driver;
      const verdict = tier.ask(this.limiter, known ?? NONE, cost, monotonicNow());
      const slot = this.#driver.numbers[SLOT] as number;
      this.#driver.forgetFreed();
      if (known === undefined && slot !== NONE) this.#place(key, slot);
      if (verdict === WAIT) {
        await this.#heard(slot);
      } else {
        const told = await this.carry(tier.question() as TierAsk, key);
        if (verdict === ASK) return this.#decided(key, this.#decisionOf(told));
      }
      patience.check();
      const decision = this.atOnce(key, cost);
      if (decision !== undefined) return decision;
    }
  }

  /** Waits until nothing is under way: no call that has been waiting asks once more. */
  async #quiet(): Promise<void> {
    while (this.#open.size > 0) await this.heardOut();
  }

  #meet(): void {
    for (const limits of this.#sharing) {
      if (!limits.names.some((name) => this.names.includes(name))) continue;
      limits.#alike.add(this);
      this.#alike.add(limits);
    }
  }

  /** What was charged may make others that were denied the same budget wait for longer, or for another limit. */
  #decided(key: string, decision: Decision): Decision {
    if (decision.allowed && this.#driver.mode === "deny-cache") {
      for (const limits of this.#alike) if (limits !== this) limits.#refunded(key);
    }
    return decision;
  }

  /** None once this is closed: the index is another's then. */
  #slotOf(key: string): number | undefined {
    return this.#isClosed ? undefined : this.#index.get(key);
  }

  #place(key: string, slot: number): void {
    this.#index.add(key, slot);
    this.#driver.keys.set(slot, key);
  }

  #put(key: string, ask: TierAsk): Answer<Told> {
    const question = ask.question();
    const plain = plainCost(question);
    this.#driver.asks(plain !== undefined);
    if (plain !== undefined) return this.#l2.consume(key, plain);
    return (this.#l2.ask as NonNullable<LimitDriver["ask"]>)(key, question);
  }

  #wake(slot: number): void {
    const left = (this.#underWay.get(slot) ?? 1) - 1;
    if (left > 0) this.#underWay.set(slot, left);
    else this.#underWay.delete(slot);
    const waiting = this.#waiting.get(slot);
    this.#waiting.delete(slot);
    for (const go of waiting ?? []) go();
    this.#driver.chores.plan();
  }

  #heard(slot: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(slot);
      if (waiting === undefined) this.#waiting.set(slot, [resolve]);
      else waiting.push(resolve);
    });
  }

  /** Tells l2 what it does not know of a key. A share is the core's to give back, or to forget. */
  async #settle(key: string): Promise<void> {
    const slot = this.#slotOf(key);
    if (slot !== undefined) await this.settleAt(slot);
  }

  /**
   * Runs a change of this process's own, unless its caller has given it up; whoever shares the prefix forgets what
   * it knew, before and after. `first`: whose admissions l2 has to know of before.
   */
  async #changing(
    key: string,
    change: () => Answer<void>,
    forget: (limits: TieredLimits) => void,
    first: Iterable<TieredLimits> = [],
  ): Promise<void> {
    if (this.#driver.mode === "eager") await this.#settleFirst(key, first);
    this.#sharing.forEach(forget);
    try {
      await promised(change());
    } finally {
      this.#sharing.forEach(forget);
    }
  }

  async #settleFirst(key: string, those: Iterable<TieredLimits>): Promise<void> {
    const patience = new Patience(this.#deadlines);
    try {
      await Promise.all(Array.from(those, (limits) => limits.#settle(key)));
      patience.check();
    } finally {
      patience.end();
    }
  }

  #refunded(key: string): void {
    const slot = this.#slotOf(key);
    if (slot !== undefined) this.#driver.tier.refunded(slot);
  }

  #blocked(key: string): void {
    const slot = this.#slotOf(key);
    if (slot !== undefined) this.#driver.tier.blocked(slot, monotonicNow());
  }

  #reset(key: string): void {
    const slot = this.#slotOf(key);
    if (slot !== undefined) this.#driver.tier.reset(slot);
  }

  #numbersOf(told: Told): Float64Array {
    if (told === undefined) return new Float64Array();
    if (!("allowed" in told)) return Float64Array.from(told);
    const { reason, limitName, limit, remaining, retryAfterMs, resetAfterMs } = told;
    const numbers = [REASONS.indexOf(reason as (typeof REASONS)[number])];
    numbers.push(this.names.indexOf(limitName), limit, remaining, retryAfterMs, resetAfterMs);
    return Float64Array.from(numbers);
  }

  #decisionOf(told: Told): Decision {
    if (told !== undefined && "allowed" in told) return told;
    const numbers = told as ArrayLike<number>;
    return decisionFrom(numbers[0] as number, numbers, 1, this.names);
  }
}
