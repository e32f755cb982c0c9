import type { BurstSet } from "#wasm";
import { type Decision, decisionFrom } from "../decision.js";
import { type ErrorCode, TidegateError } from "../errors.js";
import { keysOf } from "../key.js";
import type { Limits } from "../limits.js";
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

/** The script's wait that no wait helps. */
const NEVER = -1;

/** Says operations in the script's words, and reads its replies. What they mean was decided on the server. */
export class RedisDriver implements Driver {
  readonly #batches: Batches;
  readonly #storePrefix: string | undefined;

  constructor(batches: Batches, storePrefix: string | undefined) {
    this.#batches = batches;
    this.#storePrefix = storePrefix;
  }

  limits(prefix: string, { set, names }: Limits): LimitDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "l");
    const limits = set.wire();
    const decided = async (op: string, key: string, cost: number): Promise<Decision> => {
      const numbers = await this.#numbers(storeKey(key), `${op};${cost};${limits}`, 6);
      if (numbers[4] === NEVER) numbers[4] = Number.POSITIVE_INFINITY;
      return decisionFrom(numbers[0] as number, numbers, 1, names);
    };
    const done = async (key: string, op: string): Promise<void> => {
      await this.#reply(storeKey(key), op);
    };
    return {
      consume: (key, cost) => decided("C", key, cost),
      peek: (key, cost) => decided("P", key, cost),
      refund: (key, cost) => done(key, `R;${cost};${limits}`),
      block: (key, durationMs) => done(key, `B;${durationMs}`),
      unblock: (key) => done(key, "U;"),
      reset: (key) => done(key, `X;;${limits}`),
      close: () => {},
    };
  }

  messages(prefix: string): MessageDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "m");
    return {
      call: async (id, message) => messageFrom(await this.#reply(storeKey(id), message.wire())),
    };
  }

  bursts(prefix: string): BurstDriver {
    const storeKey = keysOf(this.#storePrefix, prefix, "b");
    return {
      observe: async (identity, policy: BurstSet, weight, nonce): Promise<Observation> => {
        const op = policy.wire(weight, nonce);
        const [fired, count, windowEndsInMs, replay] = (await this.#numbers(
          storeKey(identity),
          op,
          4,
        )) as [number, number, number, number];
        return { fired: fired === 1, count, windowEndsInMs, replay: replay === 1 };
      },
    };
  }

  async #numbers(key: string, op: string, count: number): Promise<number[]> {
    const numbers = await this.#reply(key, op);
    if (numbers.length === count && numbers.every(Number.isSafeInteger)) return numbers as number[];
    throw nonsense();
  }

  async #reply(key: string, op: string): Promise<unknown[]> {
    const reply = await this.#batches.add(key, op);
    if (!Array.isArray(reply)) throw nonsense();
    if (text(reply[0]) === "error") throw refused(text(reply[1]) ?? "");
    return reply;
  }
}

/** The error that the script told of one operation. */
function refused(said: string): TidegateError {
  const [code, message]: [ErrorCode, string] =
    said === "corrupt" || said.startsWith("WRONGTYPE")
      ? ["corrupt_state", "the key holds something that is not ours"]
      : said === "too many limits"
        ? ["unsupported", "more limits on one key than a record holds"]
        : ["store", `the server refused: ${said}`];
  return new TidegateError(code, message, { cause: new Error(said) });
}

/** Text as clients answer it: a string, or bytes where they were told to. */
function text(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;
}

const STATUSES = ["yes", "no", "absent", "fresh", "mismatch", "in-progress", "duplicate"] as const;

function messageFrom(reply: unknown[]): MessageReply {
  const status = STATUSES.find((status) => status === text(reply[0]));
  if (status === undefined) throw nonsense();
  const [, detail] = reply;
  const retryAfterMs = status === "in-progress" ? Number(detail) : 0;
  const result = status === "duplicate" ? text(detail) : undefined;
  if (Number.isNaN(retryAfterMs)) throw nonsense();
  return { status, retryAfterMs, result: result === "" ? undefined : result };
}
