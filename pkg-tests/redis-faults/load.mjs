// Decisions while something breaks: who asked what, what was answered, and what must hold whatever happens.

import assert from "node:assert/strict";
import { after } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

const FAILURES = ["store-error", "timeout"];

/** Callers that ask about one key after the other until they are told to stop. */
export class Load {
  /** Every decision, in the order of their answers, with its key. */
  decisions = [];
  #keys;
  #callers;
  #stopped = false;

  constructor(limiter, keys, callers = 16) {
    this.#keys = keys;
    this.#callers = Promise.all(
      Array.from({ length: callers }, (_, at) => this.#call(limiter, at)),
    );
  }

  async #call(limiter, first) {
    for (let at = first; !this.#stopped; at += 1) {
      const key = this.#keys[at % this.#keys.length];
      this.decisions.push({ key, ...(await limiter.consume(key)) });
      await turn();
    }
  }

  get reasons() {
    return new Set(this.decisions.map(({ reason }) => reason));
  }

  /** The decisions that were made without the store. */
  get failures() {
    return this.decisions.filter(({ reason }) => FAILURES.includes(reason));
  }

  /** How many calls the store admitted, of all or of one key. */
  admitted(key) {
    return this.#count(key, ({ reason, local }) => reason === "ok" && !local);
  }

  /** For how many the store did not answer, though it may have charged them. */
  failed(key) {
    return this.#count(key, ({ reason }) => FAILURES.includes(reason));
  }

  #count(key, counts) {
    const ofKey = (decision) => key === undefined || decision.key === key;
    return this.decisions.filter((decision) => ofKey(decision) && counts(decision)).length;
  }

  /** Whether the store has denied every key since that many decisions were made. */
  isSpent(since = 0) {
    const denied = this.decisions.slice(since).filter(({ reason }) => reason === "limited");
    return new Set(denied.map(({ key }) => key)).size === this.#keys.length;
  }

  async stop() {
    this.#stopped = true;
    await this.#callers;
  }
}

/** No promise of this file's tests is left to reject with nobody there. */
export function nothingUnhandled() {
  const rejections = [];
  process.on("unhandledRejection", (reason) => rejections.push(reason));
  after(() => assert.deepEqual(rejections, []));
}

/** Every key that a server holds, by a client of the test's own. */
export async function keysOn(server) {
  const client = server.client();
  const found = [];
  for await (const keys of client.scanStream({ count: 1_000 })) found.push(...keys);
  client.disconnect();
  return found;
}

/** Every key on the servers has a time to live. */
export async function everythingEnds(...servers) {
  let found = 0;
  for (const server of servers) {
    const keys = await keysOn(server);
    const client = server.client();
    for (const key of keys) assert.notEqual(await client.pttl(key), -1, key);
    client.disconnect();
    found += keys.length;
  }
  assert.ok(found > 0);
}
