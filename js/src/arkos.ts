/** Drop-in replacements for the stores of the Arkos gateway, under the names that its documentation uses. */

export type { ArkosGatewayStore } from "./arkos/gateway-store.js";
export {
  MemoryGatewayStore,
  type MemoryGatewayStoreOptions,
} from "./arkos/memory-gateway-store.js";
export {
  MultiTierArkosGatewayStore,
  type MultiTierOptions,
} from "./arkos/multi-tier-gateway-store.js";
export {
  RedisArkosGatewayStore,
  type RedisArkosGatewayStoreOptions,
} from "./arkos/redis-arkos-gateway-store.js";
