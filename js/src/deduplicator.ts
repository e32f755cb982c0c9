import { digest } from "./core.js";
import { TidegateError } from "./errors.js";
import { emit, isHeard } from "./events.js";
import { type Failed, Guarded, type Outcome, rethrow } from "./guarded.js";
import { ClaimLater, ClaimNow, type HeldClaim, type Terms } from "./held-claim.js";
import { asciiJson } from "./json.js";
import { MemoryStore } from "./memory-store.js";
import { MessageCall } from "./message-call.js";
import { counted } from "./metrics.js";
import {
  bad,
  checkKey,
  checkOptions,
  type Duration,
  durationMs,
  flag,
  isPlainObject,
  oneOf,
  prefixOf,
  textBytes,
  timeoutMs,
} from "./options.js";
import type { Answer } from "./pending.js";
import { Polls } from "./polls.js";
import {
  driverOf,
  type MessageDriver,
  type MessageReply,
  requireExact,
  type Store,
  type SyncMessageDriver,
} from "./store.js";

export interface DeduplicatorOptions {
  /** Default: a new MemoryStore. */
  store?: Store;
  /** How long an id is remembered once its work is committed. */
  ttl: Duration;
  /** How long a claim may stay uncommitted before another may take it. Default 30 s. */
  lease?: Duration;
  prefix?: string;
  onStoreError?: "throw" | "allow" | "deny";
  timeout?: Duration;
  bestEffort?: boolean;
}

/** What a claim answers. */
export type Claim =
  | {
      readonly status: "fresh";
      /** The work is done; false when the lease was lost to another. */
      commit(result?: unknown): Promise<boolean>;
      /** The work failed; false when the lease was lost to another. */
      release(): Promise<boolean>;
    }
  | { readonly status: "in-progress"; readonly retryAfterMs: number }
  | { readonly status: "duplicate"; readonly result: unknown }
  | { readonly status: "mismatch" };

/** What stands in the way of a claim. */
type Known = Exclude<Claim, { status: "fresh" }>;

/** What is known of an id. */
export type Look = { readonly status: "absent" } | Exclude<Known, { status: "mismatch" }>;

const KNOWN = ["store", "ttl", "lease", "prefix", "onStoreError", "timeout", "bestEffort"];
const DEFAULT_TIMEOUT_MS = 500;
const DEFAULT_LEASE_MS = 30_000;
const MAX_RESULT_BYTES = 64 * 1024;

/**
 * Remembers ids: what has been seen, what is being worked on, and what came of it.
 *
 * @example
 * const webhooks = new Deduplicator({ ttl: "1d" });
 * const receipt = await webhooks.run(event.id, () => charge(event)); // once, whoever retries
 */
export class Deduplicator {
  readonly #messages: MessageDriver;
  readonly #synchronous: boolean;
  readonly #guarded: Guarded;
  readonly #ttlMs: number;
  readonly #leaseMs: number;
  readonly #terms: Terms;
  readonly #polls = new Polls((id) => this.look(id));
  #closed = false;

  constructor(options: DeduplicatorOptions) {
    checkOptions(options, KNOWN);
    this.#ttlMs = durationMs(options.ttl, 'option "ttl"');
    this.#leaseMs =
      options.lease === undefined ? DEFAULT_LEASE_MS : durationMs(options.lease, 'option "lease"');
    const actions = ["throw", "allow", "deny"] as const;
    const onStoreError = oneOf(options.onStoreError, "onStoreError", actions, "throw");
    const timeout = timeoutMs(options.timeout, DEFAULT_TIMEOUT_MS);
    const bestEffort = flag(options.bestEffort, "bestEffort");
    const prefix = prefixOf(options.prefix);
    const store = options.store === undefined ? new MemoryStore() : options.store;
    const driver = driverOf(store);
    requireExact(store, bestEffort, "deduplication");
    this.#synchronous = store.capabilities.synchronous;
    this.#guarded = new Guarded("deduplicator", onStoreError, timeout, this.#synchronous);
    this.#messages = driver.messages(prefix, timeout);
    this.#terms = {
      guarded: this.#guarded,
      messages: this.#messages,
      ttlMs: this.#ttlMs,
      leaseMs: this.#leaseMs,
    };
  }

  /** One atomic check-and-set: true for exactly one caller per id within ttl, over the whole fleet. False while claimed. */
  first(id: string): Promise<boolean> {
    try {
      this.#check(id);
      if (this.#synchronous) return Promise.resolve(this.#firstNow(id));
      return this.#first(id);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** True when the id is remembered as done (not while it is only claimed); changes nothing. */
  async has(id: string): Promise<boolean> {
    this.#check(id);
    return this.#guarded.ask(
      () => this.#call(id, MessageCall.look()),
      ({ status }) => status === "duplicate",
      (failed) => !allowed(failed),
    );
  }

  /**
   * Two-phase: exactly one caller gets "fresh" and commits a JSON-serialisable result, or releases; a later
   * caller gets that result.
   *
   * @param options.payload the same id with another payload is "mismatch" (compared when both sides gave one).
   */
  async claim(id: string, options?: { payload?: string | Uint8Array }): Promise<Claim> {
    this.#check(id);
    const { failed, value: claim } = await this.#claim(id, payloadDigest(options));
    if (failed !== undefined) return unclaimed(failed);
    if (claim.status === "fresh") return offered(claim);
    duplicate(id);
    return claim;
  }

  /**
   * As `claim`, counting the id as one of its sender's; at once where the store is synchronous. For the gateway, which
   * tells of duplicates itself.
   *
   * @internal
   */
  claimFor(sender: string, id: string): GatewayClaim | Promise<GatewayClaim> {
    this.#check(id);
    if (this.#synchronous) return this.#claimNow(sender, id);
    return this.#claim(id, undefined, sender).then(({ failed, value }) => {
      if (failed !== undefined) throw failed.error;
      return value as GatewayClaim;
    });
  }

  /**
   * As `claimFor`, in the same call to the store as the decision that was asked for just before, and only if that
   * admits; a look otherwise. Undefined where the store cannot.
   *
   * @internal
   */
  admitFor(id: string): Promise<HeldClaim | Look> | undefined {
    this.#check(id);
    const { admit, admits } = this.#messages;
    if (admit === undefined || !admits) return undefined;
    const token = crypto.randomUUID();
    return this.#guarded.ask<MessageReply, HeldClaim | Look>(
      () => admit(id, token, this.#leaseMs),
      (reply) =>
        reply.status === "fresh" ? new ClaimLater(this.#terms, id, token) : lookOf(reply),
      rethrow,
    );
  }

  /**
   * What a claim would find, without claiming; at once where the store is synchronous. For the gateway.
   *
   * @internal
   */
  look(id: string): Look | Promise<Look> {
    this.#check(id);
    const look = (): Answer<MessageReply> => this.#call(id, MessageCall.look());
    if (this.#synchronous) return lookOf(this.#guarded.now(look as () => MessageReply));
    return this.#guarded.must(look).then(lookOf);
  }

  /**
   * What is found once an id is no longer in progress; undefined when that is wanted no more. For the gateway.
   *
   * @internal
   */
  over(id: string, retryAfterMs: number, isWanted?: () => boolean): Promise<Look | undefined> {
    return this.#polls.over(id, retryAfterMs, isWanted);
  }

  /**
   * claim → work → commit; release if the work throws, and the error is the caller's. Duplicates get the
   * stored result; in-progress ones wait for it, and take over when the lease runs out.
   *
   * @throws TidegateError "mismatch" when the id was used with another payload; with onStoreError "deny" what
   * prevented the claim, since there is no result to give in its place.
   */
  async run<T>(
    id: string,
    work: () => Promise<T> | T,
    options?: { payload?: string | Uint8Array },
  ): Promise<T> {
    if (typeof work !== "function") bad("bad_argument", "work", work, "a function");
    const payload = payloadDigest(options);
    let isCounted = false;
    for (;;) {
      this.#check(id);
      const { failed, value: claim } = await this.#claim(id, payload);
      if (failed !== undefined) {
        if (allowed(failed)) return await work();
        throw failed.error;
      }
      // However often it asks, a caller that waits is one duplicate.
      if (claim.status !== "fresh" && !isCounted) duplicate(id);
      isCounted = true;
      switch (claim.status) {
        case "fresh":
          return await worked(claim, work);
        case "duplicate":
          return claim.result as T;
        case "mismatch":
          throw new TidegateError("mismatch", "the id was used with another payload");
        case "in-progress":
          // What prevents a look prevents the next claim, which tells of it.
          await this.over(id, claim.retryAfterMs).catch(() => undefined);
      }
    }
  }

  /** Forgets the id, whatever is known of it. */
  async forget(id: string): Promise<void> {
    this.#check(id);
    await this.#guarded.must(() => this.#call(id, MessageCall.forget()));
  }

  /** Idempotent. What is remembered stays remembered. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  #check(id: unknown): void {
    if (this.#closed) throw new TidegateError("closed", "the deduplicator is closed");
    checkKey(id, "id");
  }

  /** A claim, or what a store that failed means; counts no duplicate. */
  #claim(
    id: string,
    payload: string | undefined,
    sender?: string,
  ): Promise<Outcome<ClaimLater | Known>> {
    const token = crypto.randomUUID();
    return this.#guarded.ask<MessageReply, Outcome<ClaimLater | Known>>(
      () => this.#call(id, MessageCall.claim(token, this.#leaseMs, payload), sender),
      (reply) => ({ value: knownAs(reply) ?? new ClaimLater(this.#terms, id, token, payload) }),
      (failed) => ({ failed }),
    );
  }

  #claimNow(sender: string, id: string): GatewayClaim {
    const messages = this.#messages as SyncMessageDriver;
    const claim = this.#guarded.now(() => messages.claim(id, this.#leaseMs, sender));
    if (claim !== undefined) {
      return new ClaimNow(this.#terms as Terms<SyncMessageDriver>, id, claim);
    }
    const found = this.look(id) as Look;
    // Over within this very moment.
    return found.status === "absent" ? this.#claimNow(sender, id) : found;
  }

  #firstNow(id: string): boolean {
    const messages = this.#messages as SyncMessageDriver;
    return toldFirst(
      id,
      this.#guarded.now(() => messages.first(id, this.#ttlMs)),
    );
  }

  #first(id: string): Promise<boolean> {
    const messages = this.#messages;
    const told = (isFirst: boolean) => toldFirst(id, isFirst);
    const without = (failed: Failed) => told(allowed(failed));
    if (messages.first !== undefined) {
      const first = () => messages.first?.(id, this.#ttlMs) as Answer<boolean>;
      return this.#guarded.ask(first, told, without);
    }
    const call = () => this.#call(id, MessageCall.first(this.#ttlMs));
    return this.#guarded.ask(call, ({ status }) => told(status === "yes"), without);
  }

  #call(id: string, call: MessageCall, sender?: string): Answer<MessageReply> {
    return this.#messages.call(id, call, sender);
  }
}

/** What a claim of the gateway finds. A mismatch needs a payload, which the gateway never gives. */
export type GatewayClaim = HeldClaim | Exclude<Look, { status: "absent" }>;

/** Whether a failed store lets the message pass; throws when the policy is to throw. */
function allowed({ error, action }: Failed): boolean {
  if (action === "throw") throw error;
  return action === "allow";
}

/** What a caller is told in place of a claim when the store gave none. */
function unclaimed(failed: Failed): Claim {
  if (!allowed(failed)) return { status: "in-progress", retryAfterMs: failed.retryAfterMs };
  return { status: "fresh", commit: async () => true, release: async () => true };
}

/** A claim as its user holds it. */
function offered(claim: ClaimLater): Claim {
  return {
    status: "fresh",
    commit: async (result) => claim.keep(resultJson(result)),
    release: () => claim.release(),
  };
}

function toldFirst(id: string, isFirst: boolean): boolean {
  if (!isFirst) duplicate(id);
  return isFirst;
}

/** Tells of a message that had been seen. */
export function duplicate(id: string): void {
  counted.duplicates += 1;
  if (isHeard()) emit({ type: "duplicate", id });
}

function lookOf(reply: MessageReply): Look {
  const known = knownAs(reply);
  return known === undefined || known.status === "mismatch" ? { status: "absent" } : known;
}

/** What stands in the way of a claim, if anything does. */
function knownAs({ status, retryAfterMs, result }: MessageReply): Known | undefined {
  switch (status) {
    case "in-progress":
      return { status, retryAfterMs };
    case "duplicate":
      return { status, result: result == null ? undefined : parsed(result) };
    case "mismatch":
      return { status };
  }
  return undefined;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new TidegateError("corrupt_state", "the stored result is not JSON", { cause });
  }
}

async function worked<T>(claim: ClaimLater, work: () => Promise<T> | T): Promise<T> {
  let value: T;
  try {
    value = await work();
  } catch (error) {
    // The work's own error is what the caller needs to see; a claim that cannot be released runs out.
    await claim.release().catch(() => false);
    throw error;
  }
  await claim.keep(resultJson(value));
  return value;
}

function payloadDigest(options: unknown): string | undefined {
  if (options === undefined) return undefined;
  if (!isPlainObject(options)) bad("bad_argument", "options", options, "a plain object");
  for (const name of Object.keys(options)) {
    if (name !== "payload") bad("bad_argument", "options", name, 'only { "payload" }');
  }
  const { payload } = options;
  if (payload === undefined) return undefined;
  if (typeof payload === "string") return digest(textBytes(payload));
  if (payload instanceof Uint8Array) return digest(payload);
  bad("bad_argument", "payload", payload, "a string or a Uint8Array");
}

/** A result as the store keeps it: JSON in ASCII. */
function resultJson(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  const expected = "JSON-serialisable";
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (cause) {
    throw new TidegateError("bad_argument", `result must be ${expected}`, { cause });
  }
  if (json === undefined) bad("bad_argument", "result", result, expected);
  // No character of UTF-16 takes more than three bytes.
  const fits = json.length * 3 <= MAX_RESULT_BYTES;
  const bytes = fits ? 0 : new TextEncoder().encode(json).length;
  if (bytes > MAX_RESULT_BYTES) {
    bad(
      "bad_argument",
      "result",
      `${bytes} bytes of JSON`,
      `at most ${MAX_RESULT_BYTES} bytes of JSON`,
    );
  }
  return asciiJson(json);
}
