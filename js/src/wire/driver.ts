import type { BurstSet } from "#wasm";
import { keysOf } from "../key.js";
import type { Limits } from "../limits.js";
import type { Pending } from "../pending.js";
import type { BurstDriver, Driver, LimitDriver, MessageDriver } from "../store.js";
import type { Batches } from "./batches.js";
import {
  decisionReader,
  readDone,
  readGivenBack,
  readMessage,
  readObservation,
  shareReader,
} from "./reading.js";

/** Says operations in the wire's words, and reads its replies. What they mean was decided where the records are. */
export class WireDriver implements Driver {
  readonly #batches: Batches;
  readonly #storePrefix: string | undefined;

  constructor(batches: Batches, storePrefix: string | undefined) {
    this.#batches = batches;
    this.#storePrefix = storePrefix;
  }

  limits(prefix: string, limits: Limits): LimitDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "l");
    const wire = limits.set.wire();
    const one = `C;1;${wire}`;
    const read = decisionReader(limits, true);
    const readPeek = decisionReader(limits, false);
    const readShares = shareReader(limits);
    const done = (key: string, op: string): Pending<void> =>
      this.#batches.add(storeKey(key), op, readDone);
    return {
      consume: (key, cost) =>
        this.#batches.add(storeKey(key), cost === 1 ? one : `C;${cost};${wire}`, read),
      peek: (key, cost) => this.#batches.add(storeKey(key), `P;${cost};${wire}`, readPeek),
      refund: (key, cost) => done(key, `R;${cost};${wire}`),
      ask: (key, ask) => {
        const words = ask.wire(limits.set);
        return this.#batches.add<ArrayLike<number> | undefined>(
          storeKey(key),
          words,
          ask.gives_back() ? readGivenBack : readShares,
        );
      },
      block: (key, durationMs) => done(key, `B;${durationMs}`),
      unblock: (key) => done(key, "U;"),
      reset: (key) => done(key, `X;;${wire}`),
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "m");
    const batches = this.#batches;
    return {
      get admits() {
        return batches.isOne;
      },
      call: (id, message) => batches.add(storeKey(id), message.wire(), readMessage),
      // As the core writes a claim, under the letter of one that depends on the decision before it.
      admit: (id, token, leaseMs) =>
        batches.add(storeKey(id), `H;${token};${leaseMs};`, readMessage),
      // As the core writes a commit. Both are written here: for a call into it they are too many.
      finish: (id, token, ttlMs, json = "") =>
        batches.add(storeKey(id), `D;${token};${ttlMs};;${json}`, readMessage),
    };
  }

  bursts(prefix: string): BurstDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "b");
    return {
      observe: (identity, policy: BurstSet, weight, nonce) =>
        this.#batches.add(storeKey(identity), policy.wire(weight, nonce), readObservation),
    };
  }
}
