import { errorFrom } from "../errors.js";
import { tellStoreError } from "../guarded.js";
import { monotonicNow } from "../monotonic.js";
import { StoreGuard } from "../store-guard.js";
import type { FirstTier, TierAsk } from "../wasm/gen/glue.js";
import { NONE } from "./driver.js";
import type { TieredLimits } from "./limits.js";

/** So many questions that no call waits for are under way at once. */
const MOST_UNDER_WAY = 256;

/** What has to be asked of l2 without a call that waits for it: shares to renew and to give back, units to add. */
export class Chores {
  readonly #tier: FirstTier;
  readonly #urgent: boolean;
  readonly #limitsOf: (limiter: number) => TieredLimits | undefined;
  readonly #guard = new StoreGuard("throw");
  readonly #underWay = new Set<Promise<void>>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `urgent`: what is to be done keeps the process alive until it is done. */
  constructor(
    tier: FirstTier,
    urgent: boolean,
    limitsOf: (limiter: number) => TieredLimits | undefined,
  ) {
    this.#tier = tier;
    this.#urgent = urgent;
    this.#limitsOf = limitsOf;
  }

  /** Asks now; a failure is told as an event, and the core tries again when it has to. */
  ask(ask: TierAsk): void {
    const limits = this.#limitsOf(ask.limiter());
    if (limits === undefined || !this.#guard.ask(performance.now())) {
      this.#tier.failed(ask);
      return;
    }
    const task = this.#carry(limits, ask).finally(() => {
      this.#underWay.delete(task);
      this.plan();
    });
    this.#underWay.add(task);
  }

  /** Sees to it that what is due is asked when it is due, and l2 can be asked. */
  plan(): void {
    // With that many under way, the first that is over plans.
    if (this.#timer !== undefined || this.#underWay.size >= MOST_UNDER_WAY) return;
    const at = this.#tier.due_at();
    if (Number.isNaN(at)) return;
    const waitMs = Math.max(0, at - monotonicNow(), this.#closedForMs);
    this.#timer = setTimeout(this.#run, waitMs);
    if (!this.#urgent) (this.#timer as { unref?(): void }).unref?.();
  }

  /**
   * Leaves nothing here of what there is now: of one Limiter, or with NONE of any. What l2 does not take is told
   * as an event, and where it takes none of a portion it is not asked for more.
   */
  async settle(limiter: number): Promise<void> {
    const slots = [...this.#unsettled(limiter)];
    this.#planAnew();
    for (let at = 0; at < slots.length; at += MOST_UNDER_WAY) {
      const portion = slots.slice(at, at + MOST_UNDER_WAY);
      const taken = await Promise.all(portion.map((slot) => this.#settle(slot)));
      if (!taken.includes(true)) return;
    }
  }

  *#unsettled(limiter: number): Iterable<number> {
    for (;;) {
      const slot = this.#tier.unsettled(limiter);
      if (slot === NONE) return;
      yield slot;
    }
  }

  /** Where nothing is due any more, no timer keeps the process. */
  #planAnew(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.plan();
  }

  #run = (): void => {
    this.#timer = undefined;
    const now = monotonicNow();
    // What cannot be asked is left where it is.
    while (this.#underWay.size < MOST_UNDER_WAY && this.#closedForMs === 0) {
      const ask = this.#tier.due(now);
      if (ask === undefined) break;
      this.ask(ask);
    }
    this.plan();
  };

  /** How long l2 is left alone. */
  get #closedForMs(): number {
    return this.#guard.closedForMs(performance.now());
  }

  /** Answers whether l2 took it. */
  async #settle(slot: number): Promise<boolean> {
    try {
      await this.#limitsOf(this.#tier.limiter_of(slot))?.settleAt(slot);
      return true;
    } catch (thrown) {
      tellStoreError(errorFrom(thrown));
      return false;
    }
  }

  async #carry(limits: TieredLimits, ask: TierAsk): Promise<void> {
    try {
      await limits.carry(ask);
      this.#guard.answered();
    } catch (thrown) {
      const error = errorFrom(thrown);
      this.#guard.failed(error.code, performance.now());
      tellStoreError(error);
    }
  }
}
