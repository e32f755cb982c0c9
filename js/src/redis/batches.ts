import { nonsense } from "./nonsense.js";

/** One operation on its way to the server. */
interface Call {
  readonly key: string;
  readonly op: string;
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** Sends the operations of one batch; answers one reply for each. */
export type SendBatch = (keys: string[], ops: string[]) => Promise<unknown>;

/**
 * Collects the operations that are asked for in the same tick, and sends them together, in order. A lone
 * one goes as soon as the tick is over; while others are under way, the next batch waits for what the
 * replies that are being read ask for in turn.
 */
export class Batches {
  readonly #send: SendBatch;
  readonly #maxBatch: number;
  /** Which operations may travel together: all, or those of one cluster slot. */
  readonly #group: (key: string) => number;
  #waiting: Call[] = [];
  #underWay = 0;

  constructor(send: SendBatch, maxBatch: number, group: (key: string) => number) {
    this.#send = send;
    this.#maxBatch = maxBatch;
    this.#group = group;
  }

  add(key: string, op: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, op, resolve, reject });
      if (this.#waiting.length > 1) return;
      if (this.#underWay > 0 && typeof setImmediate === "function") setImmediate(this.#flush);
      else queueMicrotask(this.#flush);
    });
  }

  #flush = (): void => {
    const groups = new Map<number, Call[]>();
    for (const call of this.#waiting) {
      const group = this.#group(call.key);
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
        throw nonsense();
      }
      for (const [at, call] of calls.entries()) call.resolve(replies[at]);
    } catch (error) {
      for (const call of calls) call.reject(error);
    } finally {
      this.#underWay -= 1;
    }
  }
}
