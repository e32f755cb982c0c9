import type { ArkosGatewayStore } from "../arkos/gateway-store.js";
import { ArkosStore, isArkosShaped } from "../arkos-store.js";
import { BurstDetector } from "../burst-detector.js";
import { storeFrom } from "../cas-store.js";
import { Deduplicator } from "../deduplicator.js";
import { TidegateError } from "../errors.js";
import { Limiter, type LimiterOptions } from "../limiter.js";
import { MemoryStore } from "../memory-store.js";
import {
  bad,
  checkOptions,
  countOf,
  durationMs,
  flag,
  functionOf,
  isPlainObject,
  oneOf,
  prefixOf,
  timeoutMs,
} from "../options.js";
import { driverOf, type Store } from "../store.js";
import { TieredStore } from "../tiered-store.js";
import { BurstAlarm } from "./burst-alarm.js";
import { ClientAddresses } from "./client-address.js";
import type { EventRule, GatewayOptions } from "./gateway-options.js";
import { Handshakes } from "./handshakes.js";
import { Identities, userOf } from "./identity.js";
import { payloadId } from "./message-id.js";
import { Messages } from "./messages.js";
import { pause } from "./pause.js";
import type { Acks } from "./refusal.js";
import { OTHERS, type Rule, Rules } from "./rule.js";
import { beforeTermination } from "./termination.js";
import { UnderWay } from "./under-way.js";

const KNOWN = [
  ...["store", "prefix", "identify", "connect", "events", "burst", "onStoreError", "timeout"],
  ...["trustProxy", "queueLimit", "acks", "dryRun", "disconnectAfter"],
];
const POLICIES = ["allow", "deny", "local"] as const;
const DEFAULT_TIMEOUT_MS = 500;
const DEFAULT_QUEUE_LIMIT = 1000;
const DEFAULT_TTL = "1h";
const DEFAULT_LEASE_MS = 30_000;

/** So many denials within so long, and a socket is disconnected. */
export interface DenialLimit {
  readonly denials: number;
  readonly windowMs: number;
}

/** The options of a gateway, checked, and what is made of them. */
export class Settings {
  readonly store: Store;
  readonly rules: Rules;
  readonly identities: Identities;
  readonly handshakes: Handshakes | undefined;
  readonly alarm: BurstAlarm | undefined;
  readonly onStoreError: "allow" | "deny" | "local";
  readonly queueLimit: number;
  readonly acks: Acks;
  readonly dryRun: boolean;
  readonly denialLimit: DenialLimit | undefined;
  /** Whether the user's own function names senders: it may name a socket after itself. */
  readonly hasOwnNames: boolean;
  /** After how long the store has answered, or is given up: by then it makes sense to ask a slow one again. */
  readonly timeoutMs: number;
  /** Connections that wait for what the store says of their packets. */
  readonly deciding = new UnderWay();
  readonly #prefix: string;
  /** Budget that the store holds in this process goes back when it is told to end. */
  readonly #forgetTermination: (() => void) | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: GatewayOptions) {
    checkOptions(options, KNOWN);
    const { identify, connect, burst, events = {}, disconnectAfter } = options;
    this.store = storeOf(options.store);
    this.#prefix = prefixOf(options.prefix);
    this.onStoreError = oneOf(options.onStoreError, "onStoreError", POLICIES, "deny");
    this.timeoutMs = timeoutMs(options.timeout, DEFAULT_TIMEOUT_MS);
    this.dryRun = flag(options.dryRun, "dryRun");
    this.acks = acksFrom(options.acks);
    const { queueLimit = DEFAULT_QUEUE_LIMIT } = options;
    this.queueLimit = countOf(queueLimit, "queueLimit");
    this.denialLimit = denialLimitFrom(disconnectAfter);
    const addresses = new ClientAddresses(options.trustProxy);
    this.identities = new Identities(functionOf(identify, "identify"), addresses);
    this.hasOwnNames = identify !== undefined;
    this.rules = this.#rulesFrom(events);
    this.handshakes = connect === undefined ? undefined : this.#handshakesFrom(connect, addresses);
    this.alarm = burst === undefined ? undefined : this.#alarmFrom(burst, addresses);
    const driver = driverOf(this.store);
    if (driver.settle !== undefined) {
      this.#forgetTermination = beforeTermination(async () => driver.settle?.());
    }
  }

  /** Whether the store has answered by the time a call returns. */
  get synchronous(): boolean {
    return this.store.capabilities.synchronous;
  }

  /** Whether packets of one socket may be decided on together. */
  get pipelines(): boolean {
    return driverOf(this.store).pipelines === true;
  }

  /** Whether what comes is refused. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Whether what came before that is refused, too. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Refuses what comes from now on, and waits for what is under way. However often it is called, it is done once. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#decideOnTheRest();
    await Promise.all(this.rules.all.map(({ messages }) => messages?.drain()));
    await Promise.all(this.rules.all.map(({ limiter }) => limiter?.close()));
    await Promise.all([this.handshakes?.close(), this.alarm?.close()]);
    this.#forgetTermination?.();
  }

  /** What came before has a deadline together; what is being asked then is answered, and no more is asked. */
  async #decideOnTheRest(): Promise<void> {
    await Promise.race([this.deciding.over(), pause(this.timeoutMs)]);
    this.#isClosed = true;
    await this.deciding.over();
    // What was let through last is with its handlers by then.
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }

  #rulesFrom(events: unknown): Rules {
    if (!isPlainObject(events)) bad("bad_policy", 'option "events"', events, "a plain object");
    const rules = Object.entries(events).map(([event, rule]) =>
      within(
        `events[${JSON.stringify(event)}]`,
        () => [event, this.#ruleFrom(event, rule as EventRule)] as const,
      ),
    );
    return new Rules(new Map(rules));
  }

  #ruleFrom(event: string, rule: EventRule): Rule {
    checkOptions(rule, ["limit", "cost", "dedup"], "the rule");
    const { limit, cost = 1, dedup } = rule;
    if (typeof cost !== "function") countOf(cost, "cost");
    if (isArkos(this.store) && typeof cost !== "function" && cost > 1) {
      throw new TidegateError("unsupported", `this store counts by one, and not by "cost" ${cost}`);
    }
    if (rule.cost !== undefined && limit === undefined) {
      bad("bad_policy", 'option "limit"', limit, 'given where there is a "cost"');
    }
    return {
      isNamed: event !== OTHERS,
      limiter: limit === undefined ? undefined : this.#limiter(limit),
      cost,
      messages: dedup === undefined ? undefined : this.#messages(dedup),
    };
  }

  #limiter(limit: LimiterOptions["limit"]): Limiter {
    const { store, dryRun, onStoreError, timeoutMs: timeout } = this;
    return new Limiter({ limit, store, prefix: this.#prefix, dryRun, onStoreError, timeout });
  }

  #messages(dedup: NonNullable<EventRule["dedup"]>): Messages {
    checkOptions(dedup, ["ttl", "lease", "id"], 'option "dedup"');
    const { ttl = DEFAULT_TTL, lease = DEFAULT_LEASE_MS, id } = dedup;
    const { store, onStoreError, synchronous, timeoutMs: timeout } = this;
    const remembers = { ttl, lease, prefix: this.#prefix, timeout };
    return new Messages({
      deduplicator: new Deduplicator({ store, ...remembers }),
      local: onStoreError === "local" && !synchronous ? new Deduplicator(remembers) : undefined,
      onStoreError,
      keepsResults: !isArkos(store),
      leaseMs: durationMs(lease, 'option "lease"'),
      retryAfterMs: timeout,
      id: functionOf(id, "id") ?? payloadId,
    });
  }

  #handshakesFrom(
    connect: NonNullable<GatewayOptions["connect"]>,
    addresses: ClientAddresses,
  ): Handshakes {
    return within("connect", () => {
      checkOptions(connect, ["limit", "identify", "maxSockets"], "the option");
      const { limit, identify, maxSockets } = connect;
      return new Handshakes({
        limiter: this.#limiter(limit),
        identify: functionOf(identify, "identify"),
        maxSockets: maxSockets === undefined ? Infinity : countOf(maxSockets, "maxSockets"),
        addresses,
        synchronous: this.synchronous,
        onStoreError: this.onStoreError,
        retryAfterMs: this.timeoutMs,
      });
    });
  }

  #alarmFrom(burst: NonNullable<GatewayOptions["burst"]>, addresses: ClientAddresses): BurstAlarm {
    return within("burst", () => {
      checkOptions(burst, ["threshold", "window", "cooldown", "when", "onBurst"], "the option");
      const { when, onBurst, ...counted } = burst;
      if (onBurst === undefined) bad("bad_policy", 'option "onBurst"', onBurst, "a function");
      const { store, timeoutMs: timeout } = this;
      return new BurstAlarm({
        detector: new BurstDetector({ store, prefix: this.#prefix, timeout, ...counted }),
        addresses,
        when: functionOf(when, "when") ?? ((socket) => userOf(socket) === undefined),
        onBurst: functionOf(onBurst, "onBurst"),
      });
    });
  }
}

function storeOf(given: Store | ArkosGatewayStore | undefined): Store {
  if (given === undefined) return new MemoryStore();
  if (typeof given === "object" && given !== null && isArkosShaped(given)) {
    return storeFrom(given as ArkosGatewayStore);
  }
  driverOf(given);
  return given as Store;
}

/** Whether nothing but five methods is behind the store. */
function isArkos(store: Store): boolean {
  return store instanceof ArkosStore || (store instanceof TieredStore && isArkos(store.l2));
}

function acksFrom(given: unknown): Acks {
  if (typeof given === "function") return given as Acks;
  if (given === undefined || given === "tidegate" || given === "arkos") return given ?? "tidegate";
  bad("bad_policy", 'option "acks"', given, '"tidegate" or "arkos" or a function');
}

function denialLimitFrom(given: GatewayOptions["disconnectAfter"]): DenialLimit | undefined {
  if (given === undefined) return undefined;
  return within("disconnectAfter", () => {
    checkOptions(given, ["denials", "window"], "the option");
    return {
      denials: countOf(given.denials, "denials"),
      windowMs: durationMs(given.window, 'option "window"'),
    };
  });
}

/** Says in which part of the options a mistake is. */
function within<T>(part: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof TidegateError)) throw error;
    throw new TidegateError(error.code, `${part}: ${error.message}`, { cause: error.cause });
  }
}
