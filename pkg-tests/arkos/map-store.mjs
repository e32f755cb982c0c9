/** An Arkos store as one writes it over a Map, with the host's faults to choose from. */
export class MapStore {
  /** What was asked of the store, in order. */
  calls = [];
  #counters = new Map();
  #ids = new Map();

  async increment(key, windowMs) {
    this.calls.push(["increment", key, windowMs]);
    const now = Date.now();
    const known = this.#counters.get(key);
    const counter = known && known.resetAt > now ? known : { count: 0, resetAt: now + windowMs };
    counter.count += 1;
    this.#counters.set(key, counter);
    return { ...counter };
  }

  async clear(prefix) {
    this.calls.push(["clear", prefix]);
    for (const keys of [this.#counters, this.#ids]) {
      for (const key of keys.keys()) if (key.startsWith(prefix)) keys.delete(key);
    }
  }

  async has(key) {
    this.calls.push(["has", key]);
    return (this.#ids.get(key) ?? 0) > Date.now();
  }

  async set(key, ttl) {
    this.calls.push(["set", key, ttl]);
    this.#ids.set(key, Date.now() + ttl * 1000);
  }

  async setIfNotExists(key, ttl) {
    this.calls.push(["setIfNotExists", key, ttl]);
    if ((this.#ids.get(key) ?? 0) > Date.now()) return false;
    this.#ids.set(key, Date.now() + ttl * 1000);
    return true;
  }
}
