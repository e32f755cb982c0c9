// Who runs in the benches. Every contestant has a loop of its own, so that the engine compiles each for
// itself, and every loop counts what was admitted, so that nothing can be left out. A contestant is made
// of its limit, per 20 days, then given the keys in the order in which it will be called with them.

import { MemoryStore as ExpressStore } from "express-rate-limit";
import { RateLimiter } from "limiter";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { Deduplicator, Limiter, MemoryStore, TieredStore } from "../../js/dist/node/index.js";

const WINDOW_MS = 20 * 86_400_000;
/** More than any key is called, and so little that no key is whole again before the run ends. */
export const PLENTY = 10_000;
/** So much that a share of it lasts. */
export const ROOMY = 10_000_000;

const limiterOf = (limit, maxKeys = 1_000_000) =>
  new Limiter({ limit: { limit, window: "20d" }, store: new MemoryStore({ maxKeys }) });

export const handles = (limit, maxKeys) => {
  const limiter = limiterOf(limit, maxKeys);
  return (keys) => {
    const ready = keys.map((key) => limiter.handle(key));
    return () => {
      let admitted = 0;
      for (let at = 0; at < ready.length; at += 1) if (ready[at].tryConsume()) admitted += 1;
      return admitted;
    };
  };
};

/** Making the handle is part of it. */
export const freshHandles = (limit) => {
  const limiter = limiterOf(limit);
  return (keys) => () => {
    let admitted = 0;
    for (const key of keys) if (limiter.handle(key).tryConsume()) admitted += 1;
    return admitted;
  };
};

export const consumeSync = (limit, maxKeys) => {
  const limiter = limiterOf(limit, maxKeys);
  return (keys) => () => {
    let admitted = 0;
    for (const key of keys) if (limiter.consumeSync(key).allowed) admitted += 1;
    return admitted;
  };
};

export const consume = (limit) => {
  const limiter = limiterOf(limit);
  return (keys) => async () => {
    let admitted = 0;
    for (const key of keys) if ((await limiter.consume(key)).allowed) admitted += 1;
    return admitted;
  };
};

/** The same in front of a store that is shared. */
export const tiered = (mode) => (limit) => {
  const store = new TieredStore({ l2: new MemoryStore(), mode });
  const limiter = new Limiter({ limit: { limit, window: "20d" }, store });
  return (keys) => async () => {
    let admitted = 0;
    for (const key of keys) if ((await limiter.consume(key)).allowed) admitted += 1;
    return admitted;
  };
};

/** The least that anything can take that has to know what time it is. */
export const clock = () => (keys) => () => {
  let admitted = 0;
  for (let at = 0; at < keys.length; at += 1) if (Date.now() > 0) admitted += 1;
  return admitted;
};

/** The least that a decision on so many keys can take: the clock, and a row fetched from memory. */
export const clockAndFetch = () => (keys) => {
  const rows = new Float64Array(4 * keys.length);
  const places = Uint32Array.from(keys, (key) => 4 * Number(key.slice("user:".length)));
  return () => {
    let admitted = 0;
    for (let at = 0; at < places.length; at += 1) {
      const row = places[at];
      if (Date.now() > rows[row]) admitted += 1;
      rows[row] += 1;
    }
    return admitted;
  };
};

/** What one writes by hand: a window per key, anchored at its first call. Nothing ever leaves the Map. */
class MapCounter {
  #windows = new Map();
  #limit;

  constructor(limit) {
    this.#limit = limit;
  }

  hit(key) {
    const now = Date.now();
    const window = this.#windows.get(key);
    if (window === undefined || now >= window.endsAt) {
      this.#windows.set(key, { count: 1, endsAt: now + WINDOW_MS });
      return true;
    }
    if (window.count >= this.#limit) return false;
    window.count += 1;
    return true;
  }
}

export const mapCounter = (limit) => {
  const counter = new MapCounter(limit);
  return (keys) => () => {
    let admitted = 0;
    for (const key of keys) if (counter.hit(key)) admitted += 1;
    return admitted;
  };
};

export const flexible = (limit) => {
  const limiter = new RateLimiterMemory({ points: limit, duration: WINDOW_MS / 1000 });
  return (keys) => async () => {
    let admitted = 0;
    for (const key of keys) {
      try {
        await limiter.consume(key);
        admitted += 1;
      } catch {
        // Denied.
      }
    }
    return admitted;
  };
};

export const limiterPackage = (limit) => {
  const limiters = new Map();
  return (keys) => () => {
    let admitted = 0;
    for (const key of keys) {
      let limiter = limiters.get(key);
      if (limiter === undefined) {
        limiter = new RateLimiter({ tokensPerInterval: limit, interval: WINDOW_MS });
        limiters.set(key, limiter);
      }
      if (limiter.tryRemoveTokens(1)) admitted += 1;
    }
    return admitted;
  };
};

export const expressStore = (limit) => {
  const store = new ExpressStore();
  store.init({ windowMs: WINDOW_MS });
  return (keys) => async () => {
    let admitted = 0;
    for (const key of keys) if ((await store.increment(key)).totalHits <= limit) admitted += 1;
    return admitted;
  };
};

export const first = () => {
  const deduplicator = new Deduplicator({ ttl: "20d" });
  return (ids) => async () => {
    let admitted = 0;
    for (const id of ids) if (await deduplicator.first(id)) admitted += 1;
    return admitted;
  };
};

export const mapOfTimers = () => {
  const timers = new Map();
  return (ids) => () => {
    let admitted = 0;
    for (const id of ids) {
      if (timers.has(id)) continue;
      timers.set(id, setTimeout(() => timers.delete(id), WINDOW_MS).unref());
      admitted += 1;
    }
    return admitted;
  };
};

/** Who keeps a state per key: each answers a call that gives a key one. */
export const keepers = {
  consumeSync: () => {
    const limiter = limiterOf(PLENTY);
    return (key) => limiter.consumeSync(key);
  },
  "handles, kept in an array": () => {
    const limiter = limiterOf(PLENTY);
    const kept = [];
    return (key) => {
      const handle = limiter.handle(key);
      kept.push(handle);
      handle.tryConsume();
    };
  },
  "Map counter by hand": () => {
    const counter = new MapCounter(PLENTY);
    return (key) => counter.hit(key);
  },
  "rate-limiter-flexible": () => {
    const limiter = new RateLimiterMemory({ points: PLENTY, duration: WINDOW_MS / 1000 });
    return (key) => limiter.consume(key);
  },
  "express-rate-limit's MemoryStore": () => {
    const store = new ExpressStore();
    store.init({ windowMs: WINDOW_MS });
    return (key) => store.increment(key);
  },
};
