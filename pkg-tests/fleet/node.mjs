// One process of the fleet. It is told what to do, does it as fast as it can, and tells what came of it.

import { Redis } from "ioredis";
import { BurstDetector, Deduplicator, Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";

const timeout = "30s";
/** How much is asked for at once. */
const AT_ONCE = 100;

const work = {
  /** Asks for every key so often, and tells how many units of each were admitted. */
  async limit(store, { limit, costs, calls }) {
    const limiter = new Limiter({ store, limit, timeout });
    const units = costs.map(() => 0);
    const asked = costs.flatMap((_, key) => Array.from({ length: calls }, () => key));
    await inAnyOrder(asked, async (key) => {
      const { allowed } = await limiter.consume(`key ${key}`, { cost: costs[key] });
      if (allowed) units[key] += costs[key];
    });
    return units;
  },

  /** Reports every identity so often, and tells how many firings each had here. */
  async burst(store, { policy, identities, reports }) {
    const detector = new BurstDetector({ store, timeout, ...policy });
    const fired = Array.from({ length: identities }, () => 0);
    const reported = fired.flatMap((_, who) => Array.from({ length: reports }, () => who));
    await inAnyOrder(reported, async (who) => {
      if ((await detector.observe(`who ${who}`)).fired) fired[who] += 1;
    });
    return fired;
  },

  /** Gets every message, handles those that are for it to handle, and tells which, and what all were answered. */
  async messages(store, { messages }) {
    const dedup = new Deduplicator({ store, timeout, ttl: "1h" });
    const handled = [];
    const answers = [];
    const ids = Array.from({ length: messages }, (_, id) => id);
    await inAnyOrder(ids, async (id) => {
      answers[id] = await dedup.run(`message ${id}`, () => {
        handled.push(id);
        return `by ${process.pid}`;
      });
    });
    return { handled, answers };
  },
};

async function inAnyOrder(items, ask) {
  const left = items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
  const next = async () => {
    while (left.length > 0) await ask(left.pop());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

process.on("message", async ({ name, port, prefix, task }) => {
  const client = new Redis(port);
  const result = await work[name](new RedisStore(client, { prefix }), task);
  client.disconnect();
  process.send(result);
});
process.on("disconnect", () => process.exit());
process.send("ready");
