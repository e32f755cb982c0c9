import type { Pending } from "../pending.js";
import { type Asked, Operation, type Read } from "./operation.js";
import { Replies } from "./replies.js";

/** Sends one batch; answers the texts of its reply. */
export type SendBatch = (batch: readonly Asked[]) => Promise<unknown>;

/** The most that travels in one call. */
export interface BatchSize {
  readonly operations: number;
  /** Characters of keys and operations, unless one operation alone has more. */
  readonly length: number;
}

export interface BatchesOptions {
  /** Which operations may travel together: all, or those of one cluster slot or shard. */
  group(key: string): number;
  /** Whether all of them run in the order in which they were added, whatever their keys. */
  isOne(): boolean;
  /**
   * Whether, while others are under way, the next batch waits for what the replies that are being read ask
   * for in turn. Never where each request to a Worker is a world of its own: what one of them has begun ends
   * with it, and what the others had given it to send would wait for ever.
   */
  lingers: boolean;
}

/** So many calls keep the server busy while replies are read here. */
const BUSY = 3;
/** What parts keys and operations. */
const SEPARATORS = 2;
/** Fewer operations than this are not worth a call of their own. */
const FEW = 8;

/**
 * Collects the operations that are asked for in the same tick, and sends them together, in order. A lone
 * one goes as soon as the tick is over, or while others are under way a moment later.
 */
export class Batches {
  readonly #send: SendBatch;
  readonly #most: BatchSize;
  readonly #group: BatchesOptions["group"];
  readonly #isOne: BatchesOptions["isOne"];
  readonly #lingers: boolean;
  #waiting: Operation<unknown>[] = [];
  /** Calls to the server. */
  #underWay = 0;
  /** Turns in which callers are still to be answered. */
  #turns = 0;

  constructor(send: SendBatch, most: BatchSize, { group, isOne, lingers }: BatchesOptions) {
    this.#send = send;
    this.#most = most;
    this.#group = group;
    this.#isOne = isOne;
    this.#lingers = lingers && typeof setImmediate === "function";
  }

  /** Whether operations that are added one after the other run so, whatever their keys. */
  get isOne(): boolean {
    return this.#isOne();
  }

  /** Answers what `read` makes of the operation's reply. */
  add<T>(key: string, op: string, read: Read<T>): Pending<T> {
    const operation = new Operation(key, op, read);
    this.#waiting.push(operation as Operation<unknown>);
    if (this.#waiting.length === 1) {
      if (this.#lingers && this.#underWay > 0 && this.#turns === 0) setImmediate(this.#flush);
      else queueMicrotask(this.#flush);
    }
    return operation;
  }

  #flush = (): void => {
    const groups = new Map<number, Operation<unknown>[]>();
    for (const operation of this.#waiting) {
      const group = this.#group(operation.key);
      const operations = groups.get(group);
      if (operations === undefined) groups.set(group, [operation]);
      else operations.push(operation);
    }
    this.#waiting = [];
    for (const operations of groups.values()) {
      for (const batch of this.#cut(operations)) this.#run(batch);
    }
  };

  /** Neither too many in one call nor too much: servers refuse what is too large, and all that travels with it. */
  *#cut(operations: Operation<unknown>[]): Generator<Operation<unknown>[]> {
    const most = this.#most;
    let [start, length] = [0, 0];
    for (const [at, { key, op }] of operations.entries()) {
      const more = key.length + op.length + SEPARATORS;
      if (at > start && (at - start === most.operations || length + more > most.length)) {
        yield operations.slice(start, at);
        [start, length] = [at, 0];
      }
      length += more;
    }
    yield start === 0 ? operations : operations.slice(start);
  }

  /** A batch that fails fails each of its operations; what that means is each decision's own business. */
  #run(operations: Operation<unknown>[]): void {
    this.#underWay += 1;
    this.#ask(operations).then(
      (replies) => {
        this.#underWay -= 1;
        this.#answer(operations, replies);
      },
      (error) => {
        this.#underWay -= 1;
        for (const operation of operations) operation.fail(error);
      },
    );
  }

  async #ask(operations: Operation<unknown>[]): Promise<Replies> {
    return new Replies(await this.#send(operations), operations.length);
  }

  /**
   * Where the server has little to do, callers are answered in turns: what the first of them ask for next is on
   * its way before the last have been answered.
   */
  #answer(operations: Operation<unknown>[], replies: Replies): void {
    const wanted = Math.min(BUSY - this.#underWay, Math.floor(operations.length / FEW));
    const turns = this.#lingers ? Math.max(1, wanted) : 1;
    const size = Math.ceil(operations.length / turns);
    for (let at = 0; at < operations.length; at += size) {
      const turn = () => {
        this.#turns -= 1;
        for (const operation of operations.slice(at, at + size)) operation.answer(replies);
      };
      this.#turns += 1;
      if (at === 0) turn();
      else setImmediate(turn);
    }
  }
}
