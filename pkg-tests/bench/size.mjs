// What a Worker uploads: its module, minified and packed with gzip -9, and WebAssembly beside it.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundleWorker } from "../workerd.mjs";

const limits = (store, imports) => `
  import { env } from "cloudflare:workers";
  import { Limiter } from "tidegate";
  ${imports}
  const limiter = new Limiter({ limit: { limit: 10, window: "1m" }, store: ${store}, bestEffort: true });
  export default { fetch: async () => Response.json(await limiter.consume("key")) };
`;

const workers = {
  "tidegate, MemoryStore": limits("undefined", ""),
  "tidegate, RedisRestStore": limits(
    "new RedisRestStore({ url: env.URL, token: env.TOKEN })",
    'import { RedisRestStore } from "tidegate/redis-rest";',
  ),
  "tidegate, DurableObjectStore": limits(
    "new DurableObjectStore(env.SHARDS)",
    'import { DurableObjectStore } from "tidegate/cloudflare"; export { TidegateShard } from "tidegate/cloudflare";',
  ),
  "tidegate, KvStore": limits(
    "new KvStore(env.KV)",
    'import { KvStore } from "tidegate/cloudflare";',
  ),
  "@upstash/ratelimit and @upstash/redis": `
    import { env } from "cloudflare:workers";
    import { Ratelimit } from "@upstash/ratelimit";
    import { Redis } from "@upstash/redis/cloudflare";
    const redis = new Redis({ url: env.URL, token: env.TOKEN });
    const limiter = new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(10, "1m") });
    export default { fetch: async () => Response.json(await limiter.limit("key")) };
  `,
};

const packed = (path) => gzipSync(readFileSync(path), { level: 9 }).length;

async function sizeOf(source) {
  const directory = mkdtempSync(join(tmpdir(), "tidegate-size-"));
  try {
    await bundleWorker(source, import.meta.dirname, directory);
    const wasm = readdirSync(directory).filter((name) => name.endsWith(".wasm"));
    const module = join(directory, "worker.js");
    return {
      minified: readFileSync(module).length,
      javascript: packed(module),
      wasm: wasm.reduce((sum, name) => sum + packed(join(directory, name)), 0),
    };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const rows = [];
for (const [name, source] of Object.entries(workers))
  rows.push({ name, ...(await sizeOf(source)) });
console.log(JSON.stringify(rows));
