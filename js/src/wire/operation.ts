import { Pending, type Waiter } from "../pending.js";
import type { Replies } from "./replies.js";

/** What an operation's reply means: its numbers, and its texts where it has any. */
export type Read<T> = (numbers: readonly number[], replies: Replies) => T;

/** What is asked of the server: an operation in the wire's words, and the key that it is for. */
export interface Asked {
  readonly key: string;
  readonly op: string;
}

/** One operation on its way to the server. */
export class Operation<T> extends Pending<T> implements Asked {
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
