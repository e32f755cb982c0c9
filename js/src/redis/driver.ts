import type { BurstSet } from "#wasm";
import { type Decision, decisionFrom, REASONS } from "../decision.js";
import { keysOf } from "../key.js";
import type { Limits } from "../limits.js";
import type { Pending } from "../pending.js";
import type {
  BurstDriver,
  Driver,
  LimitDriver,
  MessageDriver,
  MessageReply,
  Observation,
} from "../store.js";
import type { Batches } from "./batches.js";
import { nonsense } from "./nonsense.js";
import type { Replies } from "./replies.js";

/** Says operations in the script's words, and reads its replies. What they mean was decided on the server. */
export class RedisDriver implements Driver {
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
    const read = decisionReader(limits);
    const readShares = shareReader(limits);
    const done = (key: string, op: string): Pending<void> =>
      this.#batches.add(storeKey(key), op, () => {});
    return {
      consume: (key, cost) =>
        this.#batches.add(storeKey(key), cost === 1 ? one : `C;${cost};${wire}`, read),
      peek: (key, cost) => this.#batches.add(storeKey(key), `P;${cost};${wire}`, read),
      refund: (key, cost) => done(key, `R;${cost};${wire}`),
      ask: (key, ask) => this.#batches.add(storeKey(key), ask.wire(limits.set), readShares),
      block: (key, durationMs) => done(key, `B;${durationMs}`),
      unblock: (key) => done(key, "U;"),
      reset: (key) => done(key, `X;;${wire}`),
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "m");
    return {
      call: (id, message) => this.#batches.add(storeKey(id), message.wire(), readMessage),
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

/** Reads decisions of these limits: remaining, reset wait, retry wait, reason, which limit decided. */
function decisionReader({ names, capacities }: Limits): (numbers: readonly number[]) => Decision {
  const told = [0, 0, 0, 0, 0];
  return (numbers) => {
    const reason = numbers[3] as number;
    const by = numbers[4] as number;
    const name = REASONS[reason];
    const capacity = capacities[by];
    if (name === undefined || capacity === undefined) throw nonsense();
    told[0] = by;
    told[1] = capacity;
    told[2] = numbers[0] as number;
    told[3] = name === "never" ? Number.POSITIVE_INFINITY : (numbers[2] as number);
    told[4] = numbers[1] as number;
    return decisionFrom(reason, told, 0, names);
  };
}

/** Reads what a tier may decide by: the decision in the core's order, and the rest as the script tells it. */
function shareReader({ capacities }: Limits): (numbers: readonly number[]) => Float64Array {
  return ([remaining = 0, reset = 0, retry = 0, reason = 0, by = 0, ...rest]) =>
    Float64Array.of(reason, by, capacities[by] ?? 0, remaining, retry, reset, ...rest);
}

/** In the order of the script's numbers. */
const STATUSES = ["yes", "no", "absent", "fresh", "mismatch", "in-progress", "duplicate"] as const;

function readMessage(numbers: readonly number[], replies: Replies): MessageReply {
  const status = STATUSES[numbers[0] as number];
  if (status === undefined) throw nonsense();
  const result = status === "duplicate" ? replies.text() : undefined;
  return {
    status,
    retryAfterMs: numbers[1] as number,
    result: result === "" ? undefined : result,
  };
}

function readObservation(numbers: readonly number[]): Observation {
  const [count, windowEndsInMs, fired, replay] = numbers as [number, number, number, number];
  return { fired: fired === 1, count, windowEndsInMs, replay: replay === 1 };
}
