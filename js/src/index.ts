/** Exact rate limits, deduplication and burst alarms over a store that the host provides. */

export type { ArkosGatewayStore } from "./arkos/gateway-store.js";
export {
  BurstDetector,
  type BurstDetectorOptions,
  NoopBurstDetector,
  type RateStore,
} from "./burst-detector.js";
export { type CasAdapter, storeFrom } from "./cas-store.js";
export type { Decision, Reason } from "./decision.js";
export { type Claim, Deduplicator, type DeduplicatorOptions } from "./deduplicator.js";
export { type ErrorCode, TidegateError } from "./errors.js";
export { onEvent, type TidegateEvent } from "./events.js";
export { ipKey } from "./ip.js";
export { Limiter, type LimiterOptions, type OnStoreError } from "./limiter.js";
export { type Algorithm, type LimitOptions, leakyBucket } from "./limits.js";
export { MemoryStore, type MemoryStoreOptions } from "./memory-store.js";
export { metrics } from "./metrics.js";
export type { Duration } from "./options.js";
export type { Capabilities, Handle, Observation, Store } from "./store.js";
export { TieredStore, type TieredStoreOptions } from "./tiered-store.js";
export { toArkosStore } from "./to-arkos-store.js";
