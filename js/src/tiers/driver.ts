import { TidegateError } from "../errors.js";
import type { Limits } from "../limits.js";
import { SlotIndex } from "../slot-index.js";
import type { BurstDriver, Driver, LimitDriver, MessageDriver } from "../store.js";
import { stores } from "../stores.js";
import { FirstTier, SeenIds } from "../wasm/gen/glue.js";
import { Chores } from "./chores.js";
import { TieredLimits } from "./limits.js";
import { TieredMessages } from "./messages.js";

/** In place of a slot: none, as the core tells it. */
export const NONE = 0xffff_ffff;

export type Mode = "deny-cache" | "lease" | "eager";

/** How much is kept in this process. */
export interface Most {
  readonly unsynced: number;
  readonly leased: number;
  readonly keys: number;
}

/** The first tier's table in wasm memory, the indexes beside it, and the second tier's driver. */
export class TieredDriver implements Driver {
  readonly mode: Mode;
  readonly tier: FirstTier;
  readonly index: SlotIndex;
  /** The keys as they were given, by slot. */
  readonly keys = new Map<number, string>();
  readonly seen: SeenIds;
  readonly seenIndex: SlotIndex;
  readonly chores: Chores;
  /** Denials and ids may be forgotten; all else is budget. */
  readonly settle: (() => Promise<void>) | undefined;
  readonly #l2: Driver;
  /** Whoever shares a prefix shares blocks, and budgets of the same name. */
  readonly #sharing = new Map<string, Set<TieredLimits>>();
  /** By their numbers in the core. */
  readonly #limits = new Map<number, TieredLimits>();
  readonly #memory = stores();
  readonly #out: number;
  #numbers: Float64Array;
  #isDeciding = false;

  /** `callersClock`: callers' clocks decide in l2. */
  constructor(l2: Driver, mode: Mode, most: Most, syncMs: number, callersClock: boolean) {
    this.#l2 = l2;
    this.mode = mode;
    this.tier = new FirstTier(
      mode,
      mode === "lease" ? most.leased : most.unsynced,
      syncMs,
      most.keys,
      callersClock,
    );
    this.index = new SlotIndex(most.keys);
    this.seen = new SeenIds(most.keys);
    this.seenIndex = new SlotIndex(most.keys);
    this.#out = this.tier.out();
    this.#numbers = new Float64Array(this.#memory.buffer, this.#out, 8);
    // What was admitted has to be told; a share that lies idle may lie a little longer.
    const urgent = mode === "eager";
    this.chores = new Chores(this.tier, urgent, (limiter) => this.#limits.get(limiter));
    this.settle = mode === "deny-cache" ? undefined : () => this.#settle();
  }

  async #settle(): Promise<void> {
    await Promise.all([...this.#limits.values()].map((limits) => limits.heardOut()));
    await this.chores.settle(NONE);
  }

  /** A decision is what l2 was asked last, just now: what is asked next can depend on it. */
  get isDeciding(): boolean {
    return this.#isDeciding;
  }

  /** l2 is asked something else, or need not be asked to decide. */
  asks(isDecision: boolean): void {
    this.#isDeciding = isDecision;
    if (isDecision) queueMicrotask(this.#askedBefore);
  }

  #askedBefore = (): void => {
    this.#isDeciding = false;
  };

  /** The block in which the core tells numbers; memory that grew has left the old view without a buffer. */
  get numbers(): Float64Array {
    if (this.#numbers.length === 0) {
      this.#numbers = new Float64Array(this.#memory.buffer, this.#out, 8);
    }
    return this.#numbers;
  }

  limits(prefix: string, limits: Limits, timeoutMs: number): LimitDriver {
    checkOneLimit(limits, this.mode);
    const l2 = this.#l2.limits(prefix, limits, timeoutMs);
    if (this.mode !== "deny-cache" && l2.ask === undefined) {
      throw new TidegateError(
        "unsupported",
        `the l2 store cannot do what mode "${this.mode}" needs`,
      );
    }
    let sharing = this.#sharing.get(prefix);
    if (sharing === undefined) {
      sharing = new Set();
      this.#sharing.set(prefix, sharing);
    }
    const made = new TieredLimits(this, l2, limits, prefix, sharing, timeoutMs);
    this.#limits.set(made.limiter, made);
    return made;
  }

  /** A Limiter is closed: nothing here remembers that there was one. */
  release({ limiter, prefix, indexName }: TieredLimits): void {
    for (const slot of this.index.of(indexName).held()) this.tier.forget(slot);
    this.forgetFreed();
    this.tier.release(limiter);
    this.index.drop(indexName);
    this.#limits.delete(limiter);
    if (this.#sharing.get(prefix)?.size === 0) this.#sharing.delete(prefix);
  }

  messages(prefix: string, timeoutMs: number): MessageDriver {
    const l2 = this.#l2.messages(prefix, timeoutMs);
    // A store with a way of its own to see ids first has no operation that tells more of them.
    if (l2.first !== undefined) return l2;
    return new TieredMessages(this, this.seenIndex.of(prefix), l2, timeoutMs);
  }

  /** Counts and latches live in l2. */
  bursts(prefix: string, timeoutMs: number): BurstDriver {
    return this.#l2.bursts(prefix, timeoutMs);
  }

  bound(limits: Limits, nodes: number): number {
    checkOneLimit(limits, this.mode);
    return this.tier.over_admission_bound(limits.words, nodes);
  }

  /** Tells the index which slots the table freed. */
  forgetFreed(): void {
    for (let slot = this.tier.freed(); slot !== NONE; slot = this.tier.freed()) {
      this.index.forget(slot);
      this.keys.delete(slot);
    }
  }
}

function checkOneLimit({ options }: Limits, mode: Mode): void {
  if (mode === "deny-cache") return;
  const [only] = options;
  const why =
    options.length > 1 ? "several limits on one key" : only?.strict === true ? "strict" : undefined;
  if (why === undefined) return;
  throw new TidegateError(
    "unsupported",
    `mode "${mode}" cannot keep ${why}; mode "deny-cache" can`,
  );
}
