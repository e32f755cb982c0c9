// What users of Arkos' stores and of the frameworks' may write, and what the compiler has to refuse. Never run.

import rateLimit from "@fastify/rate-limit";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import Fastify from "fastify";
import {
  type ArkosGatewayStore,
  Limiter,
  MemoryStore,
  type Store,
  storeFrom,
  toArkosStore,
} from "tidegate";
import {
  MemoryGatewayStore,
  MultiTierArkosGatewayStore,
  RedisArkosGatewayStore,
  type ArkosGatewayStore as Same,
} from "tidegate/arkos";
import {
  expressRateLimitStore,
  fastifyRateLimitStore,
  nestThrottlerStorage,
} from "tidegate/compat";

const own: ArkosGatewayStore = new MemoryGatewayStore({ maxKeys: 10, now: () => 0 });
const same: Same = own;
const driven: Store = storeFrom(own, { prefix: "app" });
const tiers = new MultiTierArkosGatewayStore([own, same], { onError: (error: unknown) => error });
const tiered: ArkosGatewayStore = tiers;
await tiers.flush();
const arkos: ArkosGatewayStore = toArkosStore(new MemoryStore());
const onRedis: ArkosGatewayStore = new RedisArkosGatewayStore({}, { prefix: "app" });
const { count, resetAt }: { count: number; resetAt: number } = await arkos.increment("k", 1_000);
const first: boolean = await same.setIfNotExists("id", 3_600);
new Limiter({ limit: { algorithm: "fixed-window", limit: 5, window: "1m" }, store: driven });

const store = new MemoryStore();
expressRateLimit({ store: expressRateLimitStore(store, { prefix: "app" }) });
await Fastify().register(rateLimit, { store: fastifyRateLimitStore(store, { timeout: "1s" }) });
nestThrottlerStorage(store, { bestEffort: true });

// @ts-expect-error a store of ours, not one of the host's
toArkosStore(own);
// @ts-expect-error no clock of one's own
new RedisArkosGatewayStore({}, { now: () => 0 });
// @ts-expect-error four methods are not five
storeFrom({ increment: own.increment, clear: own.clear, has: own.has, set: own.set });
// @ts-expect-error a store of ours is no tier of Arkos'
new MultiTierArkosGatewayStore([store]);
// @ts-expect-error an unknown option
expressRateLimitStore(store, { ttl: 5 });

export { count, first, onRedis, resetAt, tiered };
