import type { Decision } from "../decision.js";
import type { Limiter } from "../limiter.js";
import type { Handle } from "../store.js";

/** What one sender may use of one limit: a key made ready once, where the store allows it. */
export class Budget {
  readonly #limiter: Limiter;
  readonly #key: string;
  readonly #handle: Handle | undefined;

  constructor(limiter: Limiter, key: string, synchronous: boolean) {
    this.#limiter = limiter;
    this.#key = key;
    if (synchronous) this.#handle = limiter.handle(key);
  }

  consume(cost: number): Decision | Promise<Decision> {
    return this.#handle?.consume(cost) ?? this.#limiter.consume(this.#key, { cost });
  }

  async reset(): Promise<void> {
    await this.#limiter.reset(this.#key);
  }
}
