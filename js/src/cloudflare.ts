/** Stores on Cloudflare, and the Durable Object class behind them. */

export {
  DurableObjectStore,
  type DurableObjectStoreOptions,
} from "./cloudflare/durable-object-store.js";
export { EdgeStore, type EdgeStoreOptions } from "./cloudflare/edge-store.js";
export { KvStore, type KvStoreOptions } from "./cloudflare/kv-store.js";
export { TidegateShard } from "./cloudflare/tidegate-shard.js";
