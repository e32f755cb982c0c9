import { digest, MessageCall } from "#wasm";
import { TidegateError } from "./errors.js";
import { emit, isHeard } from "./events.js";
import { type Failed, Guarded, type Outcome, rethrow } from "./guarded.js";
import { asciiJson } from "./json.js";
import { MemoryStore } from "./memory-store.js";
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
  type Claimed,
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

/** A fresh claim as the gateway holds it: each answers false when it was lost to another, at once where the store does. */
export interface HeldClaim {
  readonly status: "fresh";
  /** The work is done; what came of it is JSON already. */
  keep(json: string | undefined): boolean | Promise<boolean>;
  /** The work failed. */
  release(): boolean | Promise<boolean>;
  /** Makes the lease last from now. */
  renew(): boolean | Promise<boolean>;
}

/** What is known of an id. */
export type Look =
  | { readonly status: "absent" }
  | Exclude<Claim, { status: "fresh" } | { status: "mismatch" }>;

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
  }

  /** One atomic check-and-set: true for exactly one caller per id within ttl, over the whole fleet. False while claimed. */
  async first(id: string): Promise<boolean> {
    this.#check(id);
    const isFirst = await this.#first(id);
    if (!isFirst) duplicate(id);
    return isFirst;
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
    if (claim.status !== "fresh") duplicate(id);
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
      (reply) => (reply.status === "fresh" ? this.#fresh(id, token, undefined) : lookOf(reply)),
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
  #claim(id: string, payload: string | undefined, sender?: string): Promise<Outcome<Claim>> {
    const token = crypto.randomUUID();
    return this.#guarded.ask<MessageReply, Outcome<Claim>>(
      () => this.#call(id, MessageCall.claim(token, this.#leaseMs, payload), sender),
      (reply) => ({ value: knownAs(reply) ?? this.#fresh(id, token, payload) }),
      (failed) => ({ failed }),
    );
  }

  #claimNow(sender: string, id: string): GatewayClaim {
    const messages = this.#messages as SyncMessageDriver;
    const claim = this.#guarded.now(() => messages.claim(id, this.#leaseMs, sender));
    if (claim !== undefined) {
      return new ClaimNow(this.#guarded, messages, id, claim, this.#ttlMs, this.#leaseMs);
    }
    const found = this.look(id) as Look;
    // Over within this very moment.
    return found.status === "absent" ? this.#claimNow(sender, id) : found;
  }

  #fresh(
    id: string,
    token: string,
    payload: string | undefined,
  ): HeldClaim & Extract<Claim, { status: "fresh" }> {
    const messages = this.#messages;
    const yes = (ask: () => Answer<MessageReply>): Promise<boolean> =>
      this.#guarded.ask(ask, isYes, rethrow);
    const keep = (json: string | undefined) =>
      yes(() =>
        payload === undefined && messages.finish !== undefined
          ? messages.finish(id, token, this.#ttlMs, json)
          : this.#call(id, MessageCall.commit(token, this.#ttlMs, json, payload)),
      );
    return {
      status: "fresh",
      commit: async (result) => keep(resultJson(result)),
      keep,
      release: () => yes(() => this.#call(id, MessageCall.release(token))),
      renew: () => yes(() => this.#call(id, MessageCall.renew(token, this.#leaseMs, payload))),
    };
  }

  #first(id: string): Promise<boolean> {
    const messages = this.#messages;
    if (messages.first !== undefined) {
      return this.#guarded.ask(
        () => messages.first?.(id, this.#ttlMs) as Answer<boolean>,
        (isFirst) => isFirst,
        allowed,
      );
    }
    return this.#guarded.ask(
      () => this.#call(id, MessageCall.first(this.#ttlMs)),
      ({ status }) => status === "yes",
      allowed,
    );
  }

  #call(id: string, call: MessageCall, sender?: string): Answer<MessageReply> {
    try {
      return this.#messages.call(id, call, sender);
    } finally {
      call.free();
    }
  }
}

/** What a claim of the gateway finds. A mismatch needs a payload, which the gateway never gives. */
export type GatewayClaim = HeldClaim | Exclude<Look, { status: "absent" }>;

/** A claim on an id of a synchronous store. */
class ClaimNow implements HeldClaim {
  readonly status = "fresh";

  constructor(
    private readonly guarded: Guarded,
    private readonly messages: SyncMessageDriver,
    private readonly id: string,
    private readonly claim: Claimed,
    private readonly ttlMs: number,
    private readonly leaseMs: number,
  ) {}

  keep(json: string | undefined): boolean {
    const { messages, id, claim, ttlMs } = this;
    return this.guarded.now(() => messages.commit(id, claim, ttlMs, json));
  }

  release(): boolean {
    return this.#run(MessageCall.release(String(this.claim.token)));
  }

  renew(): boolean {
    return this.#run(MessageCall.renew(String(this.claim.token), this.leaseMs));
  }

  #run(call: MessageCall): boolean {
    try {
      return this.guarded.now(() => this.messages.call(this.id, call)).status === "yes";
    } finally {
      call.free();
    }
  }
}

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

/** Tells of a message that had been seen. */
export function duplicate(id: string): void {
  counted.duplicates += 1;
  if (isHeard()) emit({ type: "duplicate", id });
}

function isYes({ status }: MessageReply): boolean {
  return status === "yes";
}

function lookOf(reply: MessageReply): Look {
  const known = knownAs(reply);
  return known === undefined || known.status === "mismatch" ? { status: "absent" } : known;
}

/** What stands in the way of a claim; undefined when nothing does. */
function knownAs({
  status,
  retryAfterMs,
  result,
}: MessageReply): Exclude<Claim, { status: "fresh" }> | undefined {
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

async function worked<T>(
  claim: Extract<Claim, { status: "fresh" }>,
  work: () => Promise<T> | T,
): Promise<T> {
  let value: T;
  try {
    value = await work();
  } catch (error) {
    // The work's own error is what the caller needs to see; a claim that cannot be released runs out.
    await claim.release().catch(() => false);
    throw error;
  }
  await claim.commit(value);
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
