import { keysOf } from "../key.js";
import type { Limits } from "../limits.js";
import type { Answer } from "../pending.js";
import type { BurstDriver, Driver, LimitDriver, MessageDriver } from "../store.js";
import { givesBack, questionWords } from "../tiers/question.js";
import type { Read } from "./operation.js";
import {
  decisionReader,
  readDone,
  readGivenBack,
  readMessage,
  readObservation,
  shareReader,
} from "./reading.js";

/** Where operations are run: what `read` makes of the reply. */
export interface Operations {
  /** Whether operations that are added one after the other run so, whatever their keys. */
  readonly isOne: boolean;
  add<T>(key: string, op: string, read: Read<T>): Answer<T>;
}

/** Says operations in the wire's words, and reads its replies. What they mean was decided where the records are. */
export class WireDriver implements Driver {
  readonly #operations: Operations;
  readonly #storePrefix: string | undefined;

  constructor(operations: Operations, storePrefix: string | undefined) {
    this.#operations = operations;
    this.#storePrefix = storePrefix;
  }

  limits(prefix: string, limits: Limits): LimitDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "l");
    const { words } = limits;
    const one = `C;1;${words}`;
    const read = decisionReader(limits, true);
    const readPeek = decisionReader(limits, false);
    const readShares = shareReader(limits);
    const done = (key: string, op: string): Answer<void> =>
      this.#operations.add(storeKey(key), op, readDone);
    return {
      consume: (key, cost) =>
        this.#operations.add(storeKey(key), cost === 1 ? one : `C;${cost};${words}`, read),
      peek: (key, cost) => this.#operations.add(storeKey(key), `P;${cost};${words}`, readPeek),
      refund: (key, cost) => done(key, `R;${cost};${words}`),
      ask: (key, question) =>
        this.#operations.add<ArrayLike<number> | undefined>(
          storeKey(key),
          questionWords(question, words),
          givesBack(question) ? readGivenBack : readShares,
        ),
      block: (key, durationMs) => done(key, `B;${durationMs}`),
      unblock: (key) => done(key, "U;"),
      reset: (key) => done(key, `X;;${words}`),
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "m");
    const operations = this.#operations;
    return {
      get admits() {
        return operations.isOne;
      },
      call: (id, message) => operations.add(storeKey(id), message, readMessage),
      // A claim under the letter of one that depends on the decision before it.
      admit: (id, token, leaseMs) =>
        operations.add(storeKey(id), `H;${token};${leaseMs};`, readMessage),
    };
  }

  bursts(prefix: string): BurstDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "b");
    return {
      observe: (identity, words) =>
        this.#operations.add(storeKey(identity), words, readObservation),
    };
  }
}
