import { errorFrom, TidegateError } from "../errors.js";
import type { ArkosGatewayStore } from "./gateway-store.js";

/** So many hits of a key wait to be told. */
const MOST_UNTOLD = 1_000;

/** What an increment answers. */
export interface Counted {
  count: number;
  resetAt: number;
}

type Told = PromiseSettledResult<Counted>[];

/** The hits of one key that this process counted, and what becomes of them in the tiers behind the first. */
export class Hits {
  readonly #key: string;
  readonly #tiers: readonly ArkosGatewayStore[];
  readonly #failed: (error: unknown) => void;
  readonly #idle: () => void;
  #windowMs = 0;
  /** Hits that are still to be told, the one that is being told among them; and how many have been. */
  #untold = 0;
  #told = 0;
  /** Told, but nobody knows whether the last tier counted them. They stay counted here for their window. */
  #lost = 0;
  #lostUntil = 0;
  /** What the last tier counted of everybody's hits, and until when that holds on this process's clock. */
  #known: Counted | undefined;
  #knownUntil = 0;
  #underWay: Promise<Told> | undefined;
  #isTelling = false;
  #pause: { readonly over: Promise<void>; readonly end: () => void } | undefined;

  /** `idle` is called when nothing is left to be told. */
  constructor(
    key: string,
    tiers: readonly ArkosGatewayStore[],
    failed: (error: unknown) => void,
    idle: () => void,
  ) {
    this.#key = key;
    this.#tiers = tiers;
    this.#failed = failed;
    this.#idle = idle;
  }

  /** One more hit. The tiers are told at once, and of one hit after the other. */
  add(windowMs: number): void {
    this.#windowMs = windowMs;
    this.#untold += 1;
    if (this.#untold > MOST_UNTOLD) this.#drop(1, "so many wait already");
    if (!this.#isTelling) void this.#tell();
  }

  /** All hits that are known of: those that the last tier counted with those it has not been told, else the first tier's. */
  seenWith(first: Counted): Counted {
    const known = this.#known;
    if (known === undefined || performance.now() >= this.#knownUntil) return first;
    // The first tier's window began when the last one's was over.
    if (first.resetAt - this.#windowMs >= known.resetAt) return first;
    const lost = performance.now() < this.#lostUntil ? this.#lost : 0;
    return { count: known.count + lost + this.#untold, resetAt: known.resetAt };
  }

  /** When everything has been told that was counted before. */
  async settled(): Promise<void> {
    const all = this.#told + this.#untold;
    while (this.#told < all) await (this.#underWay ?? this.#pause?.over);
  }

  /** Tells no more, once what is under way is over. */
  async pause(): Promise<void> {
    let end = () => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#pause = { over, end };
    await this.#underWay;
  }

  /** Forgets what is known and so many hits that were not told, and goes on. */
  resume(forgotten: number): void {
    this.#known = undefined;
    this.#knownUntil = 0;
    this.#lostUntil = 0;
    this.#untold -= forgotten;
    this.#told += forgotten;
    this.#pause?.end();
    this.#pause = undefined;
  }

  /** How many are not told. */
  get untold(): number {
    return this.#untold;
  }

  async #tell(): Promise<void> {
    this.#isTelling = true;
    while (this.#untold > 0) {
      this.#underWay = Promise.allSettled(
        this.#tiers.map((tier) => tier.increment(this.#key, this.#windowMs)),
      );
      this.#heard(await this.#underWay);
      this.#underWay = undefined;
      await this.#pause?.over;
    }
    this.#isTelling = false;
    this.#idle();
  }

  #heard(answers: Told): void {
    this.#untold -= 1;
    this.#told += 1;
    const last = answers.at(-1);
    if (last?.status === "fulfilled") this.#learn(last.value);
    else this.#lose(1);
    const errors = answers.flatMap((answer) => ("reason" in answer ? [answer.reason] : []));
    for (const error of errors) this.#failed(error);
    // Nobody is to wait for a tier that hangs as often as there are hits.
    const hangs = errors.some((error) => errorFrom(error).code === "timeout");
    if (hangs && this.#untold > 0) this.#drop(this.#untold, "a tier hangs");
  }

  /** Hits that no tier behind the first will be told. They stay counted here. */
  #drop(count: number, why: string): void {
    this.#untold -= count;
    this.#told += count;
    this.#lose(count);
    this.#failed(
      new TidegateError("store", `${count} hits are not told to the other tiers: ${why}`),
    );
  }

  /** They are of the last tier's window, or, where none is known, of the one that the first of them would have begun. */
  #lose(count: number): void {
    const now = performance.now();
    if (now >= this.#lostUntil) {
      this.#lost = 0;
      this.#lostUntil = now < this.#knownUntil ? this.#knownUntil : now + this.#windowMs;
    }
    this.#lost += count;
  }

  #learn({ count, resetAt }: Counted): void {
    const isOther = this.#known !== undefined && resetAt !== this.#known.resetAt;
    // The window that they were of is over sooner than was known.
    if (isOther && performance.now() < this.#knownUntil) this.#lost = 0;
    this.#known = { count, resetAt };
    const leftMs = resetAt - Date.now();
    // Where the last tier has another clock, a whole window is the most that may be left.
    const isOurClock = leftMs > 0 && leftMs <= this.#windowMs;
    this.#knownUntil = performance.now() + (isOurClock ? leftMs : this.#windowMs);
    this.#lostUntil = Math.min(this.#lostUntil, this.#knownUntil);
  }
}
