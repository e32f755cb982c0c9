import { type ArkosGatewayStore, ttlMsOf, windowOf } from "../arkos/gateway-store.js";
import { TidegateError } from "../errors.js";
import { Guarded } from "../guarded.js";
import { keysOf } from "../key.js";
import { checkKey } from "../options.js";
import type { MessageReply } from "../store.js";
import type { Batches } from "../wire/batches.js";
import { nonsense } from "../wire/nonsense.js";
import { readDone, readMessage } from "../wire/reading.js";

/** What Arkos clears when a socket leaves, and what the keys of the socket begin with. */
const SOCKET = /^arkos::rl:[^:]+/;
const TIMEOUT_MS = 500;

/**
 * What Redis keeps for Arkos, under keys that no Limiter and no Deduplicator has. What belongs to one socket is
 * one hash, so that it is cleared by one delete.
 */
export class ArkosRedisTable implements ArkosGatewayStore {
  readonly #batches: Batches;
  readonly #guarded = new Guarded("Arkos store", "throw", TIMEOUT_MS, false);
  /** No prefix of a user's is empty. */
  readonly #counterKey: (key: string) => string;
  readonly #idKey: (key: string) => string;
  readonly #counterField = keysOf(undefined, "", "l");
  readonly #idField = keysOf(undefined, "", "m");

  constructor(batches: Batches, storePrefix: string | undefined) {
    this.#batches = batches;
    this.#counterKey = keysOf(storePrefix, "", "l");
    this.#idKey = keysOf(storePrefix, "", "m");
  }

  async increment(key: string, windowMs: number): Promise<{ count: number; resetAt: number }> {
    checkKey(key, "key");
    const [storeKey, place] = this.#place(key, this.#counterKey, this.#counterField);
    const op = `I;${windowOf(windowMs)}${place}`;
    return this.#guarded.must(() => this.#batches.add(storeKey, op, readHit));
  }

  async clear(prefix: string): Promise<void> {
    checkKey(prefix, "prefix");
    if (socketOf(prefix) !== prefix) throw unclearable(prefix);
    await this.#guarded.must(() => this.#batches.add(this.#counterKey(prefix), "Z;", readDone));
  }

  async has(key: string): Promise<boolean> {
    return (await this.#message(key, "L;")).status === "duplicate";
  }

  async set(key: string, ttl: number): Promise<void> {
    await this.#message(key, `S;${ttlMsOf(ttl)}`);
  }

  async setIfNotExists(key: string, ttl: number): Promise<boolean> {
    return (await this.#message(key, `F;${ttlMsOf(ttl)}`)).status === "yes";
  }

  async #message(key: string, words: string): Promise<MessageReply> {
    checkKey(key, "key");
    const [storeKey, place] = this.#place(key, this.#idKey, this.#idField);
    return this.#guarded.must(() => this.#batches.add(storeKey, words + place, readMessage));
  }

  /** The key that holds a record, and where in its hash the record is. */
  #place(
    key: string,
    keyOf: (key: string) => string,
    fieldOf: (rest: string) => string,
  ): [storeKey: string, place: string] {
    const socket = socketOf(key);
    if (socket === undefined) return [keyOf(key), ""];
    return [this.#counterKey(socket), `\n${fieldOf(key.slice(socket.length))}`];
  }
}

function socketOf(key: string): string | undefined {
  return SOCKET.exec(key)?.[0];
}

function readHit([count = 0, resetAt = 0]: readonly number[]): { count: number; resetAt: number } {
  if (count === 0 || resetAt === 0) throw nonsense();
  return { count, resetAt };
}

function unclearable(prefix: string): TidegateError {
  const shown = JSON.stringify(prefix.slice(0, 60));
  const why = `only "arkos::rl:" and a socket's id can be cleared on Redis, not ${shown}`;
  return new TidegateError(
    "unsupported",
    `${why}: the keys that begin with it are not kept together`,
  );
}
