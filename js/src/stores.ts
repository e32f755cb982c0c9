// The core's second module, which only stores with a conditional write, shards and tiers need. It is there once one of
// them is made.

import { storesModule } from "#wasm/stores";
import { Exchange } from "./wasm/exchange.js";
import type { Stores } from "./wasm/exports.js";

/** The rows of a shard. */
export interface Rows {
  get(key: string): string | undefined;
  /** False where a new row finds no room. */
  put(key: string, record: string, overAt: number, isNew: boolean): boolean;
  delete(key: string): void;
}

/** What the core is told of rows that threw. */
const THREW = -2;

/** The module, and what passes to it and from it beside single numbers. */
class StoresCore {
  readonly core: Stores;
  readonly exchange: Exchange;
  /** Those of the batch that is being run. */
  #rows: Rows | undefined;
  #thrown: unknown;

  constructor(module: WebAssembly.Module) {
    const rows = {
      get: (key: number, length: number) =>
        this.#tried((rows) => {
          const record = rows.get(this.exchange.textAt(key, length));
          return record === undefined ? -1 : this.exchange.text(record);
        }),
      put: (
        key: number,
        keyLength: number,
        record: number,
        length: number,
        overAt: number,
        isNew: number,
      ) =>
        this.#tried((rows) => {
          const [ofKey, text] = [
            this.exchange.textAt(key, keyLength),
            this.exchange.textAt(record, length),
          ];
          return Number(rows.put(ofKey, text, overAt, isNew === 1));
        }),
      delete: (key: number, length: number) =>
        this.#tried((rows) => {
          rows.delete(this.exchange.textAt(key, length));
          return 0;
        }),
    };
    this.core = new WebAssembly.Instance(module, { rows }).exports as unknown as Stores;
    this.exchange = new Exchange(() => this.core);
  }

  /**
   * Runs a batch on the rows, and adds to the tally; `shards` is the number of the setting, where there is one. Answers
   * the reply, or the status of a refusal; throws what the rows threw.
   */
  runBatch(
    rows: Rows,
    shards: number | undefined,
    batch: string,
    now: number,
    tally: Float64Array,
  ): string | number {
    this.#rows = rows;
    try {
      const answer = this.core.run_batch(shards ?? -1, this.exchange.text(batch), now);
      if (answer === THREW) throw this.#thrown;
      if (answer < 0) return -answer;
      const counted = this.exchange.numbers;
      tally.set(tally.map((total, at) => total + (counted[at] as number)));
      return this.exchange.answer(answer);
    } finally {
      this.#rows = undefined;
      this.#thrown = undefined;
    }
  }

  /** Nothing is thrown through the module, which would leave it half done. */
  #tried(run: (rows: Rows) => number): number {
    try {
      return run(this.#rows as Rows);
    } catch (thrown) {
      this.#thrown = thrown;
      return THREW;
    }
  }
}

let made: StoresCore | undefined;

/** Makes the module when it is first asked for. */
export function stores(): StoresCore {
  made ??= new StoresCore(storesModule());
  return made;
}
