// What users may write, and what the compiler has to refuse. Never run.

import {
  type CasAdapter,
  type Decision,
  Deduplicator,
  ipKey,
  Limiter,
  type LimitOptions,
  MemoryStore,
  type Store,
  storeFrom,
  TidegateError,
} from "tidegate";

const second: LimitOptions = { limit: 5, window: "1s", burst: 2, algorithm: "leaky-bucket" };
const minute = { name: "minute", limit: 100, window: 60_000, algorithm: "fixed-window" } as const;

const store: Store = new MemoryStore({ maxKeys: 10, onFull: "share", now: () => 0 });
const limiter = new Limiter({ limit: [second, minute], store, prefix: "p", timeout: "1s" });
const decision: Decision = await limiter.consume("key", { cost: 2 });
const reason: "ok" | "limited" | "never" | "blocked" | "store-error" | "timeout" = decision.reason;
const admitted: boolean = limiter.handle("key").tryConsume(1);
const sync: Decision = limiter.consumeSync("key");
await limiter.refund("key", 2);
await limiter.refund("key", { cost: 2 });
await limiter.block("key", "5m");
await limiter.close();

const adapter: CasAdapter = {
  get: (key) => key,
  compareAndSet: async (_key, expected, next, ttlMs) => expected === next && ttlMs > 0,
};
const ids = new Deduplicator({ store: storeFrom(adapter), ttl: "1h" });
const first: boolean = await ids.first("id");

try {
  ipKey("203.0.113.9", { ipv6Subnet: 56 });
} catch (error) {
  if (error instanceof TidegateError) {
    // @ts-expect-error there is no such code
    error.code === "no_such_code";
  }
}

// @ts-expect-error a limit needs its window
new Limiter({ limit: { limit: 5 } });
// @ts-expect-error no such algorithm
new Limiter({ limit: { limit: 5, window: 1, algorithm: "guess" } });
// @ts-expect-error an unknown option
new Limiter({ limit: minute, points: 5 });
// @ts-expect-error the cost is in an options object
await limiter.consume("key", 2);
// @ts-expect-error a decision is not to be changed
decision.allowed = true;
// @ts-expect-error ids are remembered for a stated time
new Deduplicator({});

export { admitted, first, reason, sync };
