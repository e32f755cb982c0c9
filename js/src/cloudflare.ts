/** Stores for Cloudflare's Workers. */

export { KvStore, type KvStoreOptions } from "./cloudflare/kv-store.js";
