import { type Kind, storeKey } from "./core.js";

/** Characters that the core's keys hold as they are; others are escaped, and long keys hashed. */
const PLAIN = /^[ -$&-z|~]{1,200}$/;

/**
 * Makes the store keys of one prefix and kind. What the core would leave as it is, is joined here; the
 * rest is the core's to encode.
 */
export function keysOf(storePrefix: string | undefined, prefix: string, kind: Kind) {
  const head = storeKey(storePrefix, prefix, kind, "");
  // Whoever calls often calls often in a row.
  let last = "";
  let made = head;
  return (key: string): string => {
    if (key !== last) {
      made = PLAIN.test(key) ? head + key : storeKey(storePrefix, prefix, kind, key);
      last = key;
    }
    return made;
  };
}

/** Joins parts so that no two different lists ever meet. */
export function joinKey(...parts: string[]): string {
  return parts.map((part) => `${part.length}:${part}`).join("");
}

/** A key as memory keeps it: itself, or the hash of one that is too long to keep. */
export function isLong(key: string): boolean {
  return key.length > 200;
}

/** The hash of a long key. */
export function shortened(key: string): string {
  return storeKey(undefined, "", "l", key);
}
