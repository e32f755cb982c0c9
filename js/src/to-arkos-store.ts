import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { ArkosMemoryTable } from "./arkos/memory-table.js";
import { TidegateError } from "./errors.js";
import { MemoryStore } from "./memory-store.js";
import { DRIVER, driverOf, type Store } from "./store.js";

/** One per store: whoever asks for the same store again gets the same counters. */
const made = new WeakMap<Store, ArkosGatewayStore>();

/**
 * A store as Arkos has it: drop it into an Arkos app. `clear(p)` removes p and the keys that begin with p
 * and a colon, never those of a longer name. What is kept there meets no limit of a Limiter's.
 *
 * @throws TidegateError "unsupported" for a store that cannot clear keys by what they begin with.
 */
export function toArkosStore(store: Store): ArkosGatewayStore {
  driverOf(store);
  if (!(store instanceof MemoryStore)) {
    const why = "the store cannot clear keys by what they begin with; a MemoryStore can";
    throw new TidegateError("unsupported", why);
  }
  let arkos = made.get(store);
  if (arkos === undefined) {
    arkos = new ArkosMemoryTable(store[DRIVER]);
    made.set(store, arkos);
  }
  return arkos;
}
