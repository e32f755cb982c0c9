// Decisions while something breaks: who asked what, what was answered, and what must hold whatever happens.

import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";

const FAILURES = ["store-error", "timeout"];
const ANSWERS = ["ok", "limited"];
const CALLERS = 16;

/** Callers that ask about one key after the other until they are told to stop. */
export class Load {
  /** Every decision, in the order of their answers, with its key. */
  decisions = [];
  #callers;
  #stopped = false;

  constructor(limiter, keys) {
    this.keys = keys;
    const call = (_, at) => this.#call(limiter, at);
    this.#callers = Promise.all(Array.from({ length: CALLERS }, call));
  }

  async #call(limiter, first) {
    for (let at = first; !this.#stopped; at += 1) {
      const key = this.keys[at % this.keys.length];
      const decision = await this.#asked(limiter.consume(key));
      this.decisions.push({ key, ...decision });
      // Whoever is not answered by the store leaves it the processor for a moment.
      await (FAILURES.includes(decision.reason) ? pause(1) : turn());
    }
  }

  /** A decision, and whether the store was asked: it was not where the answer needs nothing of the network. */
  async #asked(deciding) {
    let asked = true;
    const settled = () => {
      asked = false;
    };
    deciding.then(settled, settled);
    await new Promise((done) => process.nextTick(done));
    return { asked, ...(await deciding) };
  }

  /** The decisions that were made without the store. */
  get failures() {
    return this.decisions.filter(({ reason }) => FAILURES.includes(reason));
  }

  /** How many calls the store admitted, of all or of one key. */
  admitted(key) {
    const counts = (decision) => decision.reason === "ok" && (key ?? decision.key) === decision.key;
    return this.decisions.filter(counts).length;
  }

  /** Whether the store has denied every key since that many decisions were made. */
  isSpent(since = 0) {
    const denied = this.decisions.slice(since).filter(({ reason }) => reason === "limited");
    return new Set(denied.map(({ key }) => key)).size === this.keys.length;
  }

  async stop() {
    this.#stopped = true;
    await this.#callers;
  }
}

/**
 * What must hold of a load whose budgets are spent: no key was admitted more often than its limit, but for what was
 * `lost` of it, and only calls that the store was asked about, but did not answer, may have been charged without being
 * admitted. Whoever was not told by the store was told by the policy.
 */
export function countsHold(load, limit, onStoreError = "deny", lost = new Map()) {
  for (const key of load.keys) {
    const [admitted, most] = [load.admitted(key), limit + (lost.get(key) ?? 0)];
    const unanswered = load.failures.filter((failure) => failure.key === key && failure.asked);
    const told = `${key}: ${admitted} admitted, ${unanswered.length} unanswered, at most ${most}`;
    assert.ok(admitted <= most && admitted >= most - unanswered.length, told);
  }
  for (const { reason, allowed } of load.decisions) {
    assert.ok([...FAILURES, ...ANSWERS].includes(reason), reason);
    if (FAILURES.includes(reason)) assert.equal(allowed, onStoreError === "allow");
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
