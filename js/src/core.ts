// The core as the rest of the package calls it: texts in place of lengths.

import { core } from "#wasm";
import { Exchange } from "./wasm/exchange.js";
import { freedBy } from "./wasm/freed.js";

export { core };

export const exchange: Exchange = /* @__PURE__ */ new Exchange(() => core);

/** 128 bits of the SHA-256 of the bytes, or of their HMAC under a secret, as text. */
export function digest(bytes: Uint8Array, secret?: Uint8Array): string {
  const [ofSecret, ofBytes] = exchange.give(secret, bytes) as [number, number];
  return exchange.answer(core.digest(ofSecret, ofBytes));
}

/** Milliseconds of a duration that an option may name: text with a unit; 0 for anything else. */
export function duration_ms(text: string): number {
  return core.duration_ms(exchange.text(text));
}

/** The key of an address, or nothing for what is none. */
export function ip_key(address: string, ipv6Subnet: number): string | undefined {
  const length = core.ip_key(exchange.text(address), ipv6Subnet);
  return length === 0 ? undefined : exchange.answer(length);
}

/** What is kept under a key: limits, message ids, identities under watch. */
export type Kind = "l" | "m" | "b";
const KINDS = ["l", "m", "b"] as const;

/** The store key of a prefix, a kind and a key, whatever characters are in them. */
export function store_key(
  storePrefix: string | undefined,
  prefix: string,
  kind: Kind,
  key: string,
): string {
  const store = storePrefix === undefined ? undefined : units(storePrefix);
  const lengths = exchange.give(store, units(prefix), units(key));
  const [ofStore, ofPrefix, ofKey] = lengths as [number, number, number];
  return exchange.answer(core.store_key(ofStore, ofPrefix, KINDS.indexOf(kind), ofKey));
}

/** UTF-16 as the core has it. */
function units(text: string): Uint8Array {
  const units = Uint16Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return new Uint8Array(units.buffer);
}

/** The options of a limit, in the order in which the core takes them. */
const OPTIONS = ["limit", "window", "name", "algorithm", "burst", "strict"] as const;
/** How the core is told what an option is. */
const ABSENT = 0;
const FLAG = 1;
const NUMBER = 2;
const TEXT = 3;
const OTHER = 4;

/** Which option makes no sense, and what would; of which limit, or of none alone. */
export interface BadPolicy {
  readonly option: string;
  readonly expected: string;
  readonly index: number | undefined;
}

/** Limits that make sense. */
export interface CheckedLimits {
  /** As the wire and the stores know them. */
  readonly words: string;
  readonly capacities: readonly number[];
}

/** Checks the options of each limit, and all of them as one. */
export function checkLimits(list: readonly Record<string, unknown>[]): CheckedLimits | BadPolicy {
  for (const [index, options] of list.entries()) {
    giveLimit(options);
    const length = core.check_limit();
    if (length < 0) return refused(-length, index);
  }
  const length = core.check_limits();
  if (length < 0) return refused(-length, undefined);
  const capacities = [...exchange.numbers.subarray(0, list.length)];
  return { words: exchange.answer(length), capacities };
}

function giveLimit(options: Record<string, unknown>): void {
  const values = OPTIONS.map((name) => options[name]);
  const lengths = exchange.give(
    ...values.map((value) => (typeof value === "string" ? value : undefined)),
  );
  const { numbers } = exchange;
  for (const [at, value] of values.entries()) {
    const [kind, number] = told(value, lengths[at] as number);
    numbers[2 * at] = kind;
    numbers[2 * at + 1] = number;
  }
}

function told(value: unknown, length: number): [kind: number, number: number] {
  switch (typeof value) {
    case "undefined":
      return [ABSENT, 0];
    case "boolean":
      return [FLAG, Number(value)];
    case "number":
      return [NUMBER, value];
    case "string":
      return [TEXT, length];
    default:
      return [OTHER, 0];
  }
}

function refused(length: number, index: number | undefined): BadPolicy {
  const [option, expected] = exchange.answer(length).split("\n") as [string, string];
  return { option, expected, index };
}

const ACTIONS = ["throw", "allow", "deny", "local"] as const;
const FAILURES = ["store", "timeout"];
const guards = /* @__PURE__ */ freedBy((guard) => core.free_guard(guard));

/** Watches one store for one caller. */
export class StoreGuard {
  /** What to do instead of an answer. */
  readonly action: (typeof ACTIONS)[number];
  readonly #guard: number;

  constructor(onStoreError: (typeof ACTIONS)[number]) {
    this.action = onStoreError;
    this.#guard = core.guard(ACTIONS.indexOf(onStoreError));
    guards.register(this, this.#guard);
  }

  /** Whether to ask the store now. */
  ask(now: number): boolean {
    return core.guard_ask(this.#guard, now) === 1;
  }

  /** How long the store is left alone from now on. */
  closedForMs(now: number): number {
    return core.guard_closed_for(this.#guard, now);
  }

  /** The store answered. */
  answered(): void {
    core.guard_answered(this.#guard);
  }

  /** The call failed with an error of that code. */
  failed(code: string, now: number): void {
    const failure = FAILURES.indexOf(code);
    core.guard_failed(this.#guard, failure < 0 ? FAILURES.length : failure, now);
  }

  /** When asking again may help. */
  retryAfterMs(now: number): number {
    return core.guard_retry_after(this.#guard, now);
  }
}
