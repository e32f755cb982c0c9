// What the core says of limits as a user states them.

import { core, exchange } from "./core.js";

/** The options of a limit, in the order in which the core takes them. */
const OPTIONS = ["limit", "window", "name", "algorithm", "burst", "strict"] as const;
/** How the core is told what an option is. */
const ABSENT = 0;
const FLAG = 1;
const NUMBER = 2;
const TEXT = 3;
const OTHER = 4;

/** Which option makes no sense, and what would; of which limit, or of none alone. */
export interface BadPolicy {
  readonly option: string;
  readonly expected: string;
  readonly index: number | undefined;
}

/** Limits that make sense. */
export interface CheckedLimits {
  /** As the wire and the stores know them. */
  readonly words: string;
  readonly capacities: readonly number[];
}

/** Checks the options of each limit, and all of them as one. */
export function checkLimits(list: readonly Record<string, unknown>[]): CheckedLimits | BadPolicy {
  for (const [index, options] of list.entries()) {
    giveLimit(options);
    const length = core.check_limit(index);
    if (length < 0) return refused(-length, index);
  }
  const length = core.check_limits(list.length);
  if (length < 0) return refused(-length, undefined);
  const capacities = [...exchange.numbers.subarray(0, list.length)];
  return { words: exchange.answer(length), capacities };
}

function giveLimit(options: Record<string, unknown>): void {
  const values = OPTIONS.map((name) => options[name]);
  const lengths = exchange.give(
    ...values.map((value) => (typeof value === "string" ? value : undefined)),
  );
  const { numbers } = exchange;
  for (const [at, value] of values.entries()) {
    const [kind, number] = told(value, lengths[at] as number);
    numbers[2 * at] = kind;
    numbers[2 * at + 1] = number;
  }
}

function told(value: unknown, length: number): [kind: number, number: number] {
  switch (typeof value) {
    case "undefined":
      return [ABSENT, 0];
    case "boolean":
      return [FLAG, Number(value)];
    case "number":
      return [NUMBER, value];
    case "string":
      return [TEXT, length];
    default:
      return [OTHER, 0];
  }
}

function refused(length: number, index: number | undefined): BadPolicy {
  const [option, expected] = exchange.answer(length).split("\n") as [string, string];
  return { option, expected, index };
}
