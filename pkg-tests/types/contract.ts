// The package's types beside its contract (api.d.ts): every name that there is so far must be
// assignable both ways. Never run.

import type * as core from "tidegate";
import type * as arkos from "tidegate/arkos";
import type * as cloudflare from "tidegate/cloudflare";
import type * as compat from "tidegate/compat";
import type * as conformance from "tidegate/conformance";
import type * as http from "tidegate/http";
import type * as redisRest from "tidegate/redis-rest";
import type * as socketIo from "tidegate/socket.io";
import type * as contract from "./api.js";

/** A class's public part: private fields, and members that only this package can name, make a class like no other. */
type Public<T> = { [K in keyof T as K extends string ? K : never]: T[K] };

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : "ours is wider") : "ours is narrower";

/** Instances and what the constructor takes. */
type SameClass<
  A extends abstract new (
    ...args: never
  ) => unknown,
  B extends abstract new (
    ...args: never
  ) => unknown,
> = [
  Same<Public<InstanceType<A>>, Public<InstanceType<B>>>,
  Same<ConstructorParameters<A>, ConstructorParameters<B>>,
];

/** Fails to compile where a comparison is anything but `true`. */
type Holds<T extends readonly (true | readonly true[])[]> = T;

export type Checked = {
  types: Holds<
    [
      Same<contract.Duration, core.Duration>,
      Same<contract.Algorithm, core.Algorithm>,
      Same<contract.LimitOptions, core.LimitOptions>,
      Same<contract.Reason, core.Reason>,
      Same<contract.Decision, core.Decision>,
      Same<contract.OnStoreError, core.OnStoreError>,
      Same<contract.LimiterOptions, core.LimiterOptions>,
      Same<contract.Handle, core.Handle>,
      Same<contract.DeduplicatorOptions, core.DeduplicatorOptions>,
      Same<contract.Claim, core.Claim>,
      Same<contract.BurstDetectorOptions, core.BurstDetectorOptions>,
      Same<contract.Observation, core.Observation>,
      Same<contract.RateStore, core.RateStore>,
      Same<contract.Store, core.Store>,
      Same<contract.Capabilities, core.Capabilities>,
      Same<contract.CasAdapter, core.CasAdapter>,
      Same<contract.ArkosGatewayStore, core.ArkosGatewayStore>,
      Same<Public<contract.TidegateError>, Public<core.TidegateError>>,
      Same<contract.EventRule, socketIo.EventRule>,
      Same<contract.GatewayOptions, socketIo.GatewayOptions>,
      Same<contract.Gateway, socketIo.Gateway>,
      Same<contract.HttpLimitOptions, http.HttpLimitOptions>,
    ]
  >;
  classes: Holds<
    [
      SameClass<typeof contract.Limiter, typeof core.Limiter>,
      SameClass<typeof contract.Deduplicator, typeof core.Deduplicator>,
      SameClass<typeof contract.BurstDetector, typeof core.BurstDetector>,
      SameClass<typeof contract.NoopBurstDetector, typeof core.NoopBurstDetector>,
      SameClass<typeof contract.MemoryStore, typeof core.MemoryStore>,
      SameClass<typeof contract.RedisRestStore, typeof redisRest.RedisRestStore>,
      SameClass<typeof contract.KvStore, typeof cloudflare.KvStore>,
      SameClass<typeof contract.TidegateShard, typeof cloudflare.TidegateShard>,
      SameClass<typeof contract.DurableObjectStore, typeof cloudflare.DurableObjectStore>,
      SameClass<typeof contract.EdgeStore, typeof cloudflare.EdgeStore>,
      SameClass<typeof contract.TieredStore, typeof core.TieredStore>,
      SameClass<typeof contract.MemoryGatewayStore, typeof arkos.MemoryGatewayStore>,
      SameClass<typeof contract.RedisArkosGatewayStore, typeof arkos.RedisArkosGatewayStore>,
      SameClass<
        typeof contract.MultiTierArkosGatewayStore,
        typeof arkos.MultiTierArkosGatewayStore
      >,
    ]
  >;
  functions: Holds<
    [
      Same<typeof contract.leakyBucket, typeof core.leakyBucket>,
      Same<typeof contract.storeFrom, typeof core.storeFrom>,
      Same<typeof contract.toArkosStore, typeof core.toArkosStore>,
      Same<typeof contract.metrics, typeof core.metrics>,
      Same<typeof contract.ipKey, typeof core.ipKey>,
      Same<typeof contract.createGateway, typeof socketIo.createGateway>,
      Same<typeof contract.storeConformance, typeof conformance.storeConformance>,
      Same<typeof contract.onEvent, typeof core.onEvent>,
      Same<typeof contract.limitFetch, typeof http.limitFetch>,
      Same<typeof contract.expressLimit, typeof http.expressLimit>,
      Same<typeof contract.fastifyLimit, typeof http.fastifyLimit>,
      Same<typeof contract.honoLimit, typeof http.honoLimit>,
      Same<typeof contract.expressRateLimitStore, typeof compat.expressRateLimitStore>,
      Same<typeof contract.fastifyRateLimitStore, typeof compat.fastifyRateLimitStore>,
      Same<typeof contract.nestThrottlerStorage, typeof compat.nestThrottlerStorage>,
    ]
  >;
};
