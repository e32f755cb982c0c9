// What users of Cloudflare's stores may write, and what the compiler has to refuse. Never run.

import { Limiter, type Store, TieredStore } from "tidegate";
import { DurableObjectStore, EdgeStore, TidegateShard } from "tidegate/cloudflare";

declare const env: { TIDEGATE_SHARD: object };

const objects: Store = new DurableObjectStore(env.TIDEGATE_SHARD, { shards: 8, prefix: "app" });
const edge: Store = new EdgeStore({ url: "https://edge.example", token: "a token", fetch });
new Limiter({ limit: { limit: 1, window: "1s" }, store: new TieredStore({ l2: objects }) });
await edge.close();

class Shard extends TidegateShard {}
const shard = new Shard({}, env);
const response: Response = await shard.fetch(new Request("https://shard/"));
await shard.alarm();

// @ts-expect-error: how many shards is a number
new DurableObjectStore(env.TIDEGATE_SHARD, { shards: "8" });
// @ts-expect-error: there is no token by default
new EdgeStore({ url: "https://edge.example" });
// @ts-expect-error: prefixes are the users'
new EdgeStore({ url: "https://edge.example", token: "a token", prefix: "app" });

export const used = [response];
