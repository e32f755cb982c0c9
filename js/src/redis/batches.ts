import { Pending, type Waiter } from "../pending.js";
import { Replies } from "./replies.js";

/** Sends the operations of one batch: the key of each, and the operations themselves as the script's arguments. */
export type SendBatch = (keys: string[], ops: string[]) => Promise<unknown>;

export interface BatchesOptions {
  /** Which operations may travel together: all, or those of one cluster slot. */
  group(key: string): number;
  /**
   * Whether, while others are under way, the next batch waits for what the replies that are being read ask
   * for in turn. Never where each request to a Worker is a world of its own: what one of them has begun ends
   * with it, and what the others had given it to send would wait for ever.
   */
  lingers: boolean;
}

/**
 * Collects the operations that are asked for in the same tick, and sends them together, in order. A lone
 * one goes as soon as the tick is over.
 */
export class Batches {
  readonly #send: SendBatch;
  readonly #maxBatch: number;
  readonly #options: BatchesOptions;
  #waiting: Operation<unknown>[] = [];
  #underWay = 0;

  constructor(send: SendBatch, maxBatch: number, options: BatchesOptions) {
    this.#send = send;
    this.#maxBatch = maxBatch;
    this.#options = options;
  }

  /** Answers what `read` makes of the operation's reply. */
  add<T>(
    key: string,
    op: string,
    read: (numbers: readonly number[], replies: Replies) => T,
  ): Pending<T> {
    const operation = new Operation(key, op, read);
    this.#waiting.push(operation as Operation<unknown>);
    if (this.#waiting.length === 1) {
      const lingers = this.#options.lingers && this.#underWay > 0;
      if (lingers && typeof setImmediate === "function") setImmediate(this.#flush);
      else queueMicrotask(this.#flush);
    }
    return operation;
  }

  #flush = (): void => {
    const groups = new Map<number, Operation<unknown>[]>();
    for (const operation of this.#waiting) {
      const group = this.#options.group(operation.key);
      const operations = groups.get(group);
      if (operations === undefined) groups.set(group, [operation]);
      else operations.push(operation);
    }
    this.#waiting = [];
    for (const operations of groups.values()) {
      for (let at = 0; at < operations.length; at += this.#maxBatch) {
        void this.#run(operations.slice(at, at + this.#maxBatch));
      }
    }
  };

  /** A batch that fails fails each of its operations; what that means is each decision's own business. */
  async #run(operations: Operation<unknown>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const keys = operations.map(({ key }) => key);
      const answer = await this.#send(keys, runsOf(operations));
      const replies = new Replies(answer, operations.length);
      for (const operation of operations) operation.answer(replies);
    } catch (error) {
      for (const operation of operations) operation.fail(error);
    } finally {
      this.#underWay -= 1;
    }
  }
}

/** The operations as the script's arguments: those that are the same one after the other travel as one. */
function runsOf(operations: Operation<unknown>[]): string[] {
  const runs: string[] = [];
  let count = 0;
  for (const [at, { op }] of operations.entries()) {
    count += 1;
    if (operations[at + 1]?.op === op) continue;
    runs.push(`${count};${op}`);
    count = 0;
  }
  return runs;
}

/** One operation on its way to the server. */
class Operation<T> extends Pending<T> {
  readonly key: string;
  readonly op: string;
  readonly #read: (numbers: readonly number[], replies: Replies) => T;
  #waiter: Waiter<T> | undefined;

  constructor(key: string, op: string, read: (numbers: readonly number[], replies: Replies) => T) {
    super();
    this.key = key;
    this.op = op;
    this.#read = read;
  }

  tell(waiter: Waiter<T>): void {
    this.#waiter = waiter;
  }

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
