import type { Decision } from "../decision.js";
import type { Limiter } from "../limiter.js";

/** What one sender may use of one limit: a key made ready once, where the store allows it. */
export class Budget {
  readonly #limiter: Limiter;
  readonly #key: string;
  readonly consume: (cost: number) => Decision | Promise<Decision>;

  constructor(limiter: Limiter, key: string, synchronous: boolean) {
    this.#limiter = limiter;
    this.#key = key;
    if (synchronous) {
      const handle = limiter.handle(key);
      this.consume = (cost) => handle.consume(cost);
    } else {
      this.consume = (cost) => limiter.consume(key, { cost });
    }
  }

  async reset(): Promise<void> {
    await this.#limiter.reset(this.#key);
  }
}
