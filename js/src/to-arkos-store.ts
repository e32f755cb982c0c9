import type { ArkosGatewayStore } from "./arkos/gateway-store.js";
import { TidegateError } from "./errors.js";
import { driverOf, type Store } from "./store.js";

/** One per store: whoever asks for the same store again gets the same counters. */
const made = new WeakMap<Store, ArkosGatewayStore>();

/**
 * A MemoryStore or RedisStore as Arkos has it: drop it into an Arkos app. `clear(p)` removes p and the keys that begin
 * with p and a colon, never those of a longer name. On Redis p is what Arkos passes, `arkos::rl:{socketId}`, whose keys
 * are kept together, so that clearing is one delete; another p is "unsupported" there. What is kept for Arkos meets no
 * limit of a Limiter's.
 *
 * @throws TidegateError "unsupported" for a store that cannot clear keys by what they begin with.
 *
 * @example
 * gateway.register(io, { store: toArkosStore(new MemoryStore({ maxKeys: 100_000 })) });
 */
export function toArkosStore(store: Store): ArkosGatewayStore {
  const driver = driverOf(store);
  if (driver.asArkos === undefined) {
    const why =
      "the store cannot clear keys by what they begin with; a MemoryStore and a RedisStore can";
    throw new TidegateError("unsupported", why);
  }
  let arkos = made.get(store);
  if (arkos === undefined) {
    arkos = driver.asArkos();
    made.set(store, arkos);
  }
  return arkos;
}
