// What the numbers and texts of the script's replies mean.

import { type Decision, decisionFrom, REASONS } from "../decision.js";
import type { Limits } from "../limits.js";
import type { MessageReply, Observation } from "../store.js";
import { nonsense } from "./nonsense.js";
import type { Replies } from "./replies.js";

/** Reads that an operation is done. Nothing means nothing here: no reply of the script's is empty. */
export function readDone([done]: readonly number[]): void {
  if (done !== 1) throw nonsense();
}

/** Reads that what a tier gave back was taken, about which there is nothing to know. */
export function readGivenBack(numbers: readonly number[]): undefined {
  readDone(numbers);
}

/**
 * Reads decisions of these limits: remaining, reset wait, retry wait, reason, which limit decided. What was charged
 * is not whole, and what would be admitted leaves something.
 */
export function decisionReader(
  { names, capacities }: Limits,
  charges: boolean,
): (numbers: readonly number[]) => Decision {
  const told = [0, 0, 0, 0, 0];
  return (numbers) => {
    const reason = numbers[3] as number;
    const by = numbers[4] as number;
    const name = REASONS[reason];
    const capacity = capacities[by];
    if (name === undefined || capacity === undefined) throw nonsense();
    const remaining = numbers[0] as number;
    const admitted = charges ? (numbers[1] as number) > 0 : remaining > 0;
    if (remaining > capacity || (reason === 0 && !admitted)) throw nonsense();
    told[0] = by;
    told[1] = capacity;
    told[2] = remaining;
    told[3] = name === "never" ? Number.POSITIVE_INFINITY : (numbers[2] as number);
    told[4] = numbers[1] as number;
    return decisionFrom(reason, told, 0, names);
  };
}

/** Reads what a tier may decide by: the decision in the core's order, and the rest as the script tells it. */
export function shareReader({ capacities }: Limits): (numbers: readonly number[]) => Float64Array {
  return ([remaining = 0, reset = 0, retry = 0, reason = 0, by = 0, ...rest]) => {
    if (rest.at(-1) === 0) throw nonsense();
    return Float64Array.of(reason, by, capacities[by] ?? 0, remaining, retry, reset, ...rest);
  };
}

/** In the order of the script's numbers, from 1 on. */
const STATUSES = ["yes", "no", "absent", "fresh", "mismatch", "in-progress", "duplicate"] as const;

export function readMessage(numbers: readonly number[], replies: Replies): MessageReply {
  const status = STATUSES[(numbers[0] as number) - 1];
  if (status === undefined) throw nonsense();
  const result = status === "duplicate" ? replies.text() : undefined;
  return {
    status,
    retryAfterMs: numbers[1] as number,
    result: result === "" ? undefined : result,
  };
}

export function readObservation(numbers: readonly number[]): Observation {
  const [count, windowEndsInMs, fired, replay] = numbers as [number, number, number, number];
  if (count === 0 && replay === 0) throw nonsense();
  return { fired: fired === 1, count, windowEndsInMs, replay: replay === 1 };
}
