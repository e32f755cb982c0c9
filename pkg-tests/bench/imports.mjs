// What a program waits for before its first decision. Started with a name, this measures the one of that name in its
// own process, as a program does that imports it: until it is imported, and until it has decided once.

import { realpathSync } from "node:fs";

const decideWith = ({ Limiter }) =>
  new Limiter({ limit: { limit: 10, window: "1m" } }).consume("key");

/** The modules of each, and what asks them for a decision where that needs no server. */
export const imports = {
  tidegate: { modules: ["tidegate"], decide: decideWith },
  "tidegate/socket.io": { modules: ["tidegate/socket.io"] },
  "tidegate/redis": { modules: ["tidegate/redis"] },
  "rate-limiter-flexible": {
    modules: ["rate-limiter-flexible"],
    decide: ({ RateLimiterMemory }) =>
      new RateLimiterMemory({ points: 10, duration: 60 }).consume("key"),
  },
  limiter: {
    modules: ["limiter"],
    decide: ({ RateLimiter }) =>
      new RateLimiter({ tokensPerInterval: 10, interval: 60_000 }).tryRemoveTokens(1),
  },
  "express-rate-limit": {
    modules: ["express-rate-limit"],
    decide: ({ MemoryStore }) => {
      const store = new MemoryStore();
      store.init({ windowMs: 60_000 });
      return store.increment("key");
    },
  },
  "@upstash/ratelimit and @upstash/redis": { modules: ["@upstash/ratelimit", "@upstash/redis"] },
  "an empty module": { modules: ["data:text/javascript,"] },
};

async function measured({ modules, decide }) {
  const start = { wall: performance.now(), cpu: process.cpuUsage() };
  const since = () => {
    const { user, system } = process.cpuUsage(start.cpu);
    return { wall: performance.now() - start.wall, cpu: (user + system) / 1_000 };
  };
  const [module] = await Promise.all(modules.map((name) => import(name)));
  const imported = since();
  if (decide === undefined) return { imported };
  await decide(module);
  return { imported, decided: since() };
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  console.log(JSON.stringify(await measured(imports[process.argv[2]])));
  // What a limiter's timers wait for is not waited for.
  process.exit();
}
