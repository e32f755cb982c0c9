import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { ArkosMemoryTable } from "./arkos/memory-table.js";
import { core } from "./core.js";
import { type Decision, decisionFrom, REASONS, type Reason } from "./decision.js";
import { errorFrom, limiterClosed, show, TidegateError } from "./errors.js";
import { emit, isHeard } from "./events.js";
import type { Limits } from "./limits.js";
import { coreError, Memory, NOTHING } from "./memory.js";
import { MessageCall } from "./message-call.js";
import { counted } from "./metrics.js";
import { monotonicNow } from "./monotonic.js";
import { bad, checkCost, checkOptions, countOf, oneOf } from "./options.js";
import { type IdState, SenderShares } from "./sender-shares.js";
import { type PrefixIndex, SlotIndex } from "./slot-index.js";
import {
  type BurstDriver,
  type Capabilities,
  type Claimed,
  DRIVER,
  type Driver,
  type Handle,
  type HandleOwner,
  type MessageDriver,
  type MessageReply,
  type Observation,
  type Store,
  type SyncLimitDriver,
  type SyncMessageDriver,
} from "./store.js";
import type { Question } from "./tiers/question.js";

/** Where in the block of numbers a slot and its generation are told. */
const SLOT = 6;
const GENERATION = 7;
const MAX_KEYS = 2 ** 31;

export interface MemoryStoreOptions {
  /** Bound on live keys of each kind (limits, ids, identities). Default 1 000 000. */
  maxKeys?: number;
  /** Bound on stored results. Default 256 MiB; beyond it a result is kept as "done" only. */
  maxBytes?: number;
  /**
   * What new keys get when all keys are in use: "deny" (default: "limited", retryAfterMs until the next
   * key is whole) or "share" (all new keys share one budget of the limit).
   */
  onFull?: "deny" | "share";
  /** The clock, in milliseconds. Default: a monotonic one. */
  now?: () => number;
}

/**
 * Process memory: exact, synchronous, bounded, without timers. Only keys whose state is whole are ever
 * evicted.
 */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities = Object.freeze({
    atomicity: "exact",
    clock: "store",
    scope: "process",
    synchronous: true,
    minTtlMs: 1,
  });
  readonly [DRIVER]: MemoryDriver;

  constructor(options: MemoryStoreOptions = {}) {
    checkOptions(options, ["maxKeys", "maxBytes", "onFull", "now"]);
    const maxKeys =
      options.maxKeys === undefined ? 1_000_000 : countOf(options.maxKeys, "maxKeys", MAX_KEYS);
    const maxBytes =
      options.maxBytes === undefined ? 256 << 20 : countOf(options.maxBytes, "maxBytes");
    const onFull = oneOf(options.onFull, "onFull", ["deny", "share"], "deny");
    const now = clockOf(options.now);
    const epoch = options.now === undefined ? wallClock() : (ms: number) => ms;
    this[DRIVER] = new MemoryDriver(maxKeys, maxBytes, onFull, now, epoch);
  }

  /** Live keys of all kinds. */
  get size(): number {
    return core.size(this[DRIVER].number);
  }

  /** Nothing to do: there are no timers and no connections. What the store holds stays usable. */
  async close(): Promise<void> {}
}

/** How far the two clocks may drift apart before an epoch time follows the wall clock. */
const DRIFT_MS = 100;

/**
 * Turns a monotonic time into the wall clock's. The offset stays the same until somebody has set that
 * clock, so that one moment has one name.
 */
function wallClock(): (ms: number) => number {
  let offset = 0;
  return (ms) => {
    const drift = Date.now() - monotonicNow();
    if (Math.abs(drift - offset) > DRIFT_MS) offset = Math.round(drift);
    return ms + offset;
  };
}

function clockOf(now: (() => number) | undefined): () => number {
  if (now === undefined) return monotonicNow;
  if (typeof now !== "function") {
    bad("bad_policy", 'option "now"', now, "a function that answers milliseconds");
  }
  return () => {
    const ms = reading(now);
    if (typeof ms === "number" && ms >= 0 && ms <= Number.MAX_SAFE_INTEGER) return ms;
    throw new TidegateError(
      "store",
      `the store's now() must answer milliseconds, but answered ${show(ms)}`,
    );
  };
}

function reading(now: () => number): unknown {
  try {
    return now();
  } catch (cause) {
    throw new TidegateError("store", `the store's now() failed: ${show(cause)}`, { cause });
  }
}

/** The table in wasm memory, the indexes beside it, and the block in which it tells its numbers. */
export class MemoryDriver implements Driver {
  readonly table: Memory;
  /** Names the tables to the functions of the core that take numbers alone. */
  readonly number: number;
  readonly now: () => number;
  /** A time of `now` as the host's other clocks know it. */
  readonly epoch: (ms: number) => number;
  readonly limitSlots: SlotIndex;
  readonly #messageSlots: SlotIndex;
  readonly shares: SenderShares;
  readonly #burstSlots: SlotIndex;
  readonly #out: number;
  #numbers: Float64Array;
  #tokens = 0;

  constructor(
    maxKeys: number,
    maxBytes: number,
    onFull: "deny" | "share",
    now: () => number,
    epoch: (ms: number) => number,
  ) {
    this.table = new Memory(maxKeys, maxBytes, onFull === "share");
    this.number = this.table.number;
    this.now = now;
    this.epoch = epoch;
    this.limitSlots = new SlotIndex(maxKeys);
    this.#messageSlots = new SlotIndex(maxKeys);
    this.shares = new SenderShares(maxKeys);
    this.#burstSlots = new SlotIndex(maxKeys);
    this.#out = this.table.out();
    this.#numbers = new Float64Array(core.memory.buffer, this.#out, 8);
  }

  /** The block; wasm memory that grew has left the old view without a buffer. */
  get numbers(): Float64Array {
    if (this.#numbers.length === 0)
      this.#numbers = new Float64Array(core.memory.buffer, this.#out, 8);
    return this.#numbers;
  }

  /** Names a claim: nobody else shares the table. */
  nextToken(): number {
    this.#tokens += 1;
    return this.#tokens;
  }

  /** Gives the tables back at once; whoever held the store may not use it any more. */
  release(): void {
    this.table.free();
  }

  /** A slot or a generation that the block tells, as a small integer. */
  told(at: number): number {
    return (this.numbers[at] as number) | 0;
  }

  limits(prefix: string, limits: Limits): SyncLimitDriver {
    return new MemoryLimits(this, this.limitSlots.of(prefix), limits);
  }

  messages(prefix: string): MessageDriver {
    return new MemoryMessages(this, this.#messageSlots.of(prefix));
  }

  asArkos(): ArkosGatewayStore {
    return new ArkosMemoryTable(this);
  }

  /** Limits on the keys that are a tree. */
  limitTree(limits: Limits): MemoryLimits {
    return new MemoryLimits(this, this.limitSlots.tree(), limits);
  }

  /** Ids that are a tree. */
  messageTree(): SyncMessageDriver {
    return new MemoryMessages(this, this.#messageSlots.tree());
  }

  /** Forgets the limits and the ids of those trees that are the key, or begin with it and a colon. */
  clear(key: string, limits: MemoryLimits | undefined): void {
    for (const slot of this.limitSlots.tree().below(key)) limits?.resetAt(slot);
    for (const slot of this.#messageSlots.tree().below(key)) {
      this.table.message(slot, NOTHING, MessageCall.forget(), this.now());
    }
    this.forgetMessages();
  }

  /** Room for one more id in the share of its sender. */
  makeRoom(sender: string): void {
    if (!this.shares.isFull(sender)) return;
    const run = (slot: number, call: MessageCall): MessageReply["status"] =>
      this.table.message(slot, NOTHING, call, this.now()).status;
    const stateOf = (slot: number): IdState => {
      const status = run(slot, MessageCall.look());
      if (status === "in-progress") return "under way";
      return status === "duplicate" ? "finished" : "gone";
    };
    this.shares.makeRoom(sender, stateOf, (slot) => run(slot, MessageCall.forget()));
    this.forgetMessages();
  }

  bursts(prefix: string): BurstDriver {
    const index = this.#burstSlots.of(prefix);
    const { table } = this;
    return {
      observe: (identity: string, words: string): Observation =>
        this.at(
          index,
          identity,
          index.get(identity),
          (slot) => table.observe(slot, NOTHING, words, this.now()),
          this.#forgetBursts,
        ),
    };
  }

  /** Tells the index which slots the table freed; answers how many. */
  forgetLimits(): number {
    let freed = 0;
    for (
      let slot = core.freed_limit(this.number);
      slot !== NOTHING;
      slot = core.freed_limit(this.number)
    ) {
      this.limitSlots.forget(slot);
      freed += 1;
    }
    return freed;
  }

  forgetMessages = (): void => {
    for (
      let slot = core.freed_message(this.number);
      slot !== NOTHING;
      slot = core.freed_message(this.number)
    ) {
      this.#messageSlots.forget(slot);
      this.shares.remove(slot);
    }
  };

  #forgetBursts = (): void => {
    for (
      let slot = core.freed_burst(this.number);
      slot !== NOTHING;
      slot = core.freed_burst(this.number)
    ) {
      this.#burstSlots.forget(slot);
    }
  };

  /** Runs an operation on a key's slot; the slot that a new key got is indexed after the freed ones are forgotten. */
  at<T>(
    index: PrefixIndex,
    key: string,
    known: number | undefined,
    operation: (slot: number) => T,
    forget: () => void,
  ): T {
    try {
      const answer = operation(known ?? NOTHING);
      const slot = this.told(SLOT);
      forget();
      if (known === undefined && slot !== NOTHING) index.add(key, slot);
      return answer;
    } catch (thrown) {
      forget();
      throw errorFrom(thrown);
    }
  }
}

/** The ids of one prefix on the table. */
class MemoryMessages implements SyncMessageDriver {
  readonly #driver: MemoryDriver;
  readonly #table: Memory;
  readonly #index: PrefixIndex;

  constructor(driver: MemoryDriver, index: PrefixIndex) {
    this.#driver = driver;
    this.#table = driver.table;
    this.#index = index;
  }

  first(id: string, ttlMs: number): boolean {
    // First the clock, which is anybody's code and may come back here.
    const now = this.#driver.now();
    const known = this.#index.get(id);
    const answer = core.first(this.#driver.number, known ?? NOTHING, NOTHING, ttlMs, now);
    return this.#placed(id, known, answer);
  }

  call(id: string, call: MessageCall, sender?: string): MessageReply {
    return this.#counted(id, sender, (slot) =>
      this.#table.message(slot, NOTHING, call, this.#driver.now()),
    );
  }

  claim(id: string, leaseMs: number, sender?: string): Claimed | undefined {
    const token = this.#driver.nextToken();
    const now = this.#driver.now();
    const known = this.#index.get(id);
    const isNew = sender !== undefined && known === undefined;
    if (isNew) this.#driver.makeRoom(sender);
    const answer = core.claim(this.#driver.number, known ?? NOTHING, NOTHING, token, leaseMs, now);
    const isFresh = this.#placed(id, known, answer);
    const slot = this.#driver.told(SLOT);
    if (isNew && slot !== NOTHING) this.#driver.shares.add(sender, slot);
    return isFresh ? { token, slot, generation: this.#driver.told(GENERATION) } : undefined;
  }

  commit(id: string, claimed: Claimed, ttlMs: number, json: string | undefined): boolean {
    const { slot, generation, token } = claimed;
    const now = this.#driver.now();
    const done = this.#table.commit(slot, generation, token, ttlMs, json, now);
    if (done !== NOTHING) return done === 1;
    return this.call(id, MessageCall.commit(String(token), ttlMs, json)).status === "yes";
  }

  /** Indexes the slot that a new id was given, once the freed ones are forgotten; what the core answers with yes or no. */
  #placed(id: string, known: number | undefined, answer: number): boolean {
    const slot = this.#driver.told(SLOT);
    this.#driver.forgetMessages();
    if (answer < 0) throw coreError(answer);
    if (known === undefined && slot !== NOTHING) this.#index.add(id, slot);
    return answer === 1;
  }

  /** An operation on an id that, if it is new, is one more of its sender's. */
  #counted<T>(id: string, sender: string | undefined, operation: (slot: number) => T): T {
    const known = this.#index.get(id);
    if (sender === undefined || known !== undefined) return this.#at(id, operation, known);
    this.#driver.makeRoom(sender);
    const answer = this.#at(id, operation, known);
    const slot = this.#driver.told(SLOT);
    if (slot !== NOTHING) this.#driver.shares.add(sender, slot);
    return answer;
  }

  #at<T>(id: string, operation: (slot: number) => T, known = this.#index.get(id)): T {
    return this.#driver.at(this.#index, id, known, operation, this.#driver.forgetMessages);
  }
}

/** The limits of one Limiter on the table. */
export class MemoryLimits implements SyncLimitDriver {
  readonly #driver: MemoryDriver;
  readonly #store: number;
  readonly #index: PrefixIndex;
  readonly #limiter: number;
  readonly #names: readonly string[];
  #handles: Handles | undefined;

  constructor(driver: MemoryDriver, index: PrefixIndex, limits: Limits) {
    this.#driver = driver;
    this.#store = driver.number;
    this.#index = index;
    this.#limiter = driver.table.register(limits.words);
    this.#names = limits.names;
  }

  consume(key: string, cost: number, now = this.#driver.now()): Decision {
    const slot = this.#index.get(key);
    let reason = NOTHING;
    if (slot !== undefined)
      reason = core.consume(this.#store, this.#limiter, slot, NOTHING, cost, now);
    return this.#told(reason === NOTHING ? this.consumeNew(key, cost, now) : reason);
  }

  /** Consumes on a key that has no slot; one that it gets is told in the block. */
  consumeNew(key: string, cost: number, now: number): number {
    // What was freed before may include the key's own old slot.
    this.#driver.forgetLimits();
    const reason = core.consume_new(this.#store, this.#limiter, cost, now);
    if (reason < 0) throw coreError(reason);
    this.#placed(key);
    return reason;
  }

  peek(key: string, cost: number): Decision {
    const now = this.#driver.now();
    const slot = this.#index.get(key) ?? NOTHING;
    const reason = core.peek(this.#store, this.#limiter, slot, NOTHING, cost, now);
    if (reason < 0) throw coreError(reason);
    // Looking whether a new key would find room makes it.
    evicted(this.#driver.forgetLimits());
    return this.#told(reason);
  }

  refund(key: string, cost: number): void {
    const slot = this.#index.get(key);
    if (slot === undefined) return;
    core.refund(this.#store, this.#limiter, slot, NOTHING, cost, this.#driver.now());
    this.#driver.forgetLimits();
  }

  ask(key: string, question: Question): ArrayLike<number> | undefined {
    const now = this.#driver.now();
    this.#driver.forgetLimits();
    const known = this.#index.get(key);
    const numbers = this.#driver.table.ask(this.#limiter, known ?? NOTHING, NOTHING, question, now);
    if (known === undefined) this.#placed(key);
    else this.#driver.forgetLimits();
    return numbers;
  }

  block(key: string, durationMs: number): void {
    const now = this.#driver.now();
    this.#driver.forgetLimits();
    const known = this.#index.get(key);
    const answer = core.block(this.#store, known ?? NOTHING, NOTHING, durationMs, now);
    if (answer < 0) throw coreError(answer);
    if (known === undefined) this.#placed(key);
  }

  unblock(key: string): void {
    const slot = this.#index.get(key);
    if (slot === undefined) return;
    core.unblock(this.#store, slot, NOTHING);
    this.#driver.forgetLimits();
  }

  reset(key: string): void {
    const slot = this.#index.get(key);
    if (slot !== undefined) this.resetAt(slot);
  }

  /** As `reset`, of whatever key has that slot. */
  resetAt(slot: number): void {
    core.reset(this.#store, this.#limiter, slot, NOTHING);
    this.#driver.forgetLimits();
  }

  close(): void {
    core.unregister(this.#store, this.#limiter);
  }

  handle(key: string, owner: HandleOwner): Handle {
    this.#handles ??= new Handles(this.#driver, this, this.#limiter, this.#names, owner);
    return new MemoryHandle(this.#handles, key);
  }

  /** The slot that a handle of this key is to use, or NOTHING. */
  slotOf(key: string): number {
    return this.#index.get(key) ?? NOTHING;
  }

  /** Indexes the slot that a new key was given, once the freed ones are forgotten. */
  #placed(key: string): void {
    const slot = this.#driver.told(SLOT);
    evicted(this.#driver.forgetLimits());
    if (slot !== NOTHING) this.#index.add(key, slot);
  }

  #told(reason: number): Decision {
    return decisionFrom(reason, this.#driver.numbers, 0, this.#names);
  }
}

/**
 * Keys that made room for a new one. It is told later: a listener that makes calls of its own would overwrite
 * the block before what it tells of this call has been read.
 */
function evicted(count: number): void {
  if (count === 0) return;
  counted.evicted += count;
  if (isHeard()) queueMicrotask(() => emit({ type: "evicted", count }));
}

/** What the handles of one Limiter share: a handle itself is as small as it can be, since there are many. */
class Handles {
  readonly driver: MemoryDriver;
  readonly store: number;
  readonly limits: MemoryLimits;
  readonly limiter: number;
  readonly names: readonly string[];
  readonly owner: HandleOwner;

  constructor(
    driver: MemoryDriver,
    limits: MemoryLimits,
    limiter: number,
    names: readonly string[],
    owner: HandleOwner,
  ) {
    this.driver = driver;
    this.store = driver.number;
    this.limits = limits;
    this.limiter = limiter;
    this.names = names;
    this.owner = owner;
  }
}

/** A slot with its generation: no key is looked up until the slot is no longer the key's. */
class MemoryHandle implements Handle {
  readonly #shared: Handles;
  readonly #key: string;
  #slot = NOTHING;
  #generation = 0;

  constructor(shared: Handles, key: string) {
    this.#shared = shared;
    this.#key = key;
  }

  tryConsume(cost = 1): boolean {
    const { store, limiter, driver, owner } = this.#shared;
    if (owner.closed) throw limiterClosed();
    if (cost !== 1) checkCost(cost);
    const now = driver.now();
    let reason = core.try_consume(store, limiter, this.#slot, this.#generation, cost, now);
    if (reason === NOTHING) reason = this.#again(cost, now);
    if (reason === 0) {
      owner.counts.first.ok += 1;
      return true;
    }
    owner.counts.first[REASONS[reason] as Reason] += 1;
    return owner.dryRun;
  }

  consume(cost = 1): Decision {
    const { store, limiter, driver, names, owner } = this.#shared;
    if (owner.closed) throw limiterClosed();
    if (cost !== 1) checkCost(cost);
    const now = driver.now();
    let reason = core.consume(store, limiter, this.#slot, this.#generation, cost, now);
    if (reason === NOTHING) reason = this.#again(cost, now);
    return owner.tell(this.#key, decisionFrom(reason, driver.numbers, 0, names));
  }

  /** The slot is not the key's, or not any more: finds the one that is. */
  #again(cost: number, now: number): number {
    const { store, limiter, driver, limits } = this.#shared;
    this.#slot = limits.slotOf(this.#key);
    if (this.#slot !== NOTHING) {
      this.#generation = core.generation(store, this.#slot);
      const reason = core.consume(store, limiter, this.#slot, this.#generation, cost, now);
      if (reason !== NOTHING) return reason;
    }
    const reason = limits.consumeNew(this.#key, cost, now);
    this.#slot = driver.told(SLOT);
    this.#generation = driver.told(GENERATION);
    return reason;
  }
}
