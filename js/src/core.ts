// The core as the rest of the package calls it: texts in place of lengths.

import { core } from "#wasm";
import { Exchange } from "./wasm/exchange.js";

export { core };

export const exchange: Exchange = /* @__PURE__ */ new Exchange(() => core);

/** 128 bits of the SHA-256 of the bytes, or of their HMAC under a secret, as text. */
export function digest(bytes: Uint8Array, secret?: Uint8Array): string {
  const [ofSecret, ofBytes] = exchange.give(secret, bytes) as [number, number];
  return exchange.answer(core.digest(ofSecret, ofBytes));
}

/** Milliseconds of a duration that an option may name: text with a unit; 0 for anything else. */
export function millisecondsOf(text: string): number {
  return core.duration_ms(exchange.text(text));
}

/** The key of an address, or nothing for what is none. */
export function keyOfAddress(address: string, ipv6Subnet: number): string | undefined {
  const length = core.ip_key(exchange.text(address), ipv6Subnet);
  return length === 0 ? undefined : exchange.answer(length);
}

/** What is kept under a key: limits, message ids, identities under watch. */
export type Kind = "l" | "m" | "b";
const KINDS = ["l", "m", "b"] as const;

/** The store key of a prefix, a kind and a key, whatever characters are in them. */
export function storeKey(
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
  const units = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at += 1) units[at] = text.charCodeAt(at);
  return new Uint8Array(units.buffer);
}
