import { Carried } from "../carried.js";
import type { Deadlines } from "../deadlines.js";
import { type ArkosGatewayStore, checkCounted, checkFlag } from "./gateway-store.js";
import type { Counted } from "./hits.js";

/** An Arkos store that answers in time and what can be, or fails. */
export class TimedStore implements ArkosGatewayStore {
  constructor(
    private readonly store: ArkosGatewayStore,
    private readonly deadlines: Deadlines,
  ) {}

  increment(key: string, windowMs: number): Promise<Counted> {
    return this.#inTime(async (store) => checkCounted(await store.increment(key, windowMs)));
  }

  clear(prefix: string): Promise<void> {
    return this.#inTime((store) => store.clear(prefix));
  }

  has(key: string): Promise<boolean> {
    return this.#inTime(async (store) => checkFlag("has", await store.has(key)));
  }

  set(key: string, ttl: number): Promise<void> {
    return this.#inTime((store) => store.set(key, ttl));
  }

  setIfNotExists(key: string, ttl: number): Promise<boolean> {
    return this.#inTime(async (store) =>
      checkFlag("setIfNotExists", await store.setIfNotExists(key, ttl)),
    );
  }

  #inTime<T>(call: (store: ArkosGatewayStore) => Promise<T>): Promise<T> {
    // Whatever it throws or answers, and be it no promise at all.
    return Carried.ask(async () => call(this.store), this.deadlines);
  }
}
