// One process of the fleet: it is told what to do, calls as fast as it is answered, and tells what came of it.

import { Redis } from "ioredis";
import { Limiter, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";

/** So many calls at once. */
const AT_ONCE = 16;
/** Every so often all keys are new, with whole budgets: what one of them admitted is one window of it. */
const WINDOW_MS = 2_000;

const work = {
  async load({ limit, tier, prefix, keys, until }, client) {
    const store = new TieredStore({ l2: new RedisStore(client, { prefix }), ...tier });
    const limiter = new Limiter({ limit, store, onStoreError: "deny", timeout: 250 });
    const told = { admitted: {}, calls: 0, local: 0, reasons: {} };
    while (Date.now() < until) {
      const window = Math.floor(Date.now() / WINDOW_MS);
      const call = async () => {
        // Most calls are for few of the keys.
        const key = `${window}:${Math.floor(keys * Math.random() ** 3)}`;
        const { allowed, local, reason } = await limiter.consume(key);
        told.calls += 1;
        if (local) told.local += 1;
        if (allowed) told.admitted[key] = (told.admitted[key] ?? 0) + 1;
        told.reasons[reason] = (told.reasons[reason] ?? 0) + 1;
      };
      await Promise.all(Array.from({ length: AT_ONCE }, call));
      await new Promise(setImmediate);
    }
    await limiter.close();
    await store.close();
    return told;
  },

  /** Takes shares of a key, and keeps them. */
  async hold({ limit, tier, prefix }, client) {
    const store = new TieredStore({ l2: new RedisStore(client, { prefix }), ...tier });
    const limiter = new Limiter({ limit, store });
    let admitted = 0;
    for (let local = false; !local; admitted += 1) ({ local } = await limiter.consume("key"));
    return admitted;
  },
};

process.on("message", async ({ name, port, task }) => {
  const client = new Redis(port, { retryStrategy: () => 20 });
  client.on("error", () => {});
  const told = await work[name](task, client);
  process.send(told);
  if (name === "load") client.disconnect();
});
process.on("disconnect", () => process.exit());
process.send("ready");
