import { Pending, type Waiter } from "../pending.js";
import type { Replies } from "./replies.js";

/** What an operation's reply means: its numbers, and its texts where it has any. */
export type Read<T> = (numbers: readonly number[], replies: Replies) => T;

/** One operation on its way to the server. */
export class Operation<T> extends Pending<T> {
  readonly key: string;
  readonly op: string;
  readonly #read: Read<T>;
  #waiter: Waiter<T> | undefined;

  constructor(key: string, op: string, read: Read<T>) {
    super();
    this.key = key;
    this.op = op;
    this.#read = read;
  }

  tell(waiter: Waiter<T>): void {
    this.#waiter = waiter;
  }

  /** The batch was answered, and this operation's reply is next. */
  answer(replies: Replies): void {
    let value: T;
    try {
      value = this.#read(replies.next(), replies);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#waiter?.answered(value);
  }

  fail(error: unknown): void {
    this.#waiter?.failed(error);
  }
}

/** Operations as the script's arguments: those that are the same one after the other travel as one. */
export function runsOf(operations: readonly Operation<unknown>[]): string[] {
  const runs: string[] = [];
  let count = 0;
  for (let at = 0; at < operations.length; at += 1) {
    const op = operations[at]?.op;
    count += 1;
    if (operations[at + 1]?.op === op) continue;
    runs.push(`${count};${op}`);
    count = 0;
  }
  return runs;
}
