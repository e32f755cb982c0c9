import { TidegateError } from "../errors.js";

/** One operation on its way to the server. */
interface Call {
  readonly key: string;
  readonly op: string;
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** Sends the operations of one batch; answers one reply for each. */
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
  #waiting: Call[] = [];
  #underWay = 0;

  constructor(send: SendBatch, maxBatch: number, options: BatchesOptions) {
    this.#send = send;
    this.#maxBatch = maxBatch;
    this.#options = options;
  }

  add(key: string, op: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, op, resolve, reject });
      if (this.#waiting.length > 1) return;
      const lingers = this.#options.lingers && this.#underWay > 0;
      if (lingers && typeof setImmediate === "function") setImmediate(this.#flush);
      else queueMicrotask(this.#flush);
    });
  }

  #flush = (): void => {
    const groups = new Map<number, Call[]>();
    for (const call of this.#waiting) {
      const group = this.#options.group(call.key);
      const calls = groups.get(group);
      if (calls === undefined) groups.set(group, [call]);
      else calls.push(call);
    }
    this.#waiting = [];
    for (const calls of groups.values()) {
      for (let at = 0; at < calls.length; at += this.#maxBatch) {
        void this.#run(calls.slice(at, at + this.#maxBatch));
      }
    }
  };

  /** A batch that fails fails each of its operations; what that means is each decision's own business. */
  async #run(calls: Call[]): Promise<void> {
    this.#underWay += 1;
    try {
      const keys = calls.map(({ key }) => key);
      const ops = calls.map(({ op }) => op);
      const replies = await this.#send(keys, ops);
      if (!Array.isArray(replies) || replies.length !== calls.length) {
        throw new TidegateError("store", "the server's reply is not one of the script's");
      }
      for (const [at, call] of calls.entries()) call.resolve(replies[at]);
    } catch (error) {
      for (const call of calls) call.reject(error);
    } finally {
      this.#underWay -= 1;
    }
  }
}
