// The Rust Worker beside a limiter written by hand in JavaScript for the same job: an authorised POST with JSON in
// and out, a Durable Object per shard, a token bucket as a row of its SQLite. Both run on a workerd of their own, in
// turns, under the same load. Also what starting costs.

import { existsSync, readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { serve, TOKEN } from "../worker/served.mjs";

// What is compared is the work, and not how fast a disk confirms: it is the same for both, and ten times as long.
if (existsSync("/dev/shm")) process.env.TMPDIR = "/dev/shm";

const ROUNDS = 5;
const REQUESTS = 1_500;
const CONNECTIONS = 16;
const KEYS = 500;

/** What somebody would write who needs one algorithm, and no more than that. */
const byHand = `
  const json = { "content-type": "application/json" };

  export class TidegateShard {
    constructor(state) {
      this.sql = state.storage.sql;
      this.sql.exec("CREATE TABLE IF NOT EXISTS buckets (key TEXT PRIMARY KEY, tokens REAL, at INTEGER) WITHOUT ROWID");
    }
    async fetch(request) {
      const { key, limit: { limit, window }, cost = 1 } = await request.json();
      const now = Date.now();
      const [row] = this.sql.exec("SELECT tokens, at FROM buckets WHERE key = ?", key).toArray();
      const rate = limit / window;
      const tokens = row ? Math.min(limit, row.tokens + (now - row.at) * rate) : limit;
      const allowed = tokens >= cost;
      const left = allowed ? tokens - cost : tokens;
      if (allowed) this.sql.exec("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?)", key, left, now);
      return new Response(JSON.stringify({
        allowed,
        reason: allowed ? "ok" : "limited",
        limit,
        remaining: Math.floor(left),
        retryAfterMs: allowed ? 0 : Math.ceil((cost - tokens) / rate),
        resetAfterMs: Math.ceil((limit - left) / rate),
      }), { headers: json });
    }
  }

  const hash = (text) => {
    let hash = 0x811c9dc5;
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    return hash >>> 0;
  };

  export default {
    async fetch(request, env) {
      if (new URL(request.url).pathname !== "/v1/consume") return new Response("", { status: 404 });
      if (request.headers.get("authorization") !== "Bearer " + env.TIDEGATE_TOKEN) return new Response("", { status: 401 });
      const body = await request.json();
      if (typeof body.key !== "string" || !(body.limit.limit > 0)) return new Response("", { status: 400 });
      const id = env.TIDEGATE_SHARD.idFromName("64/" + (hash(body.key) % 64));
      const response = await env.TIDEGATE_SHARD.get(id).fetch("https://shard/", { method: "POST", body: JSON.stringify(body) });
      return new Response(await response.text(), { status: response.status, headers: json });
    },
  };
`;

const env = { TIDEGATE_TOKEN: TOKEN };
const contestants = {
  "the Rust Worker": await serve({ env }),
  "by hand in JavaScript": await serve({ env, source: byHand }),
};
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

function consume(url, key) {
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/v1/consume`, {
      agent,
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    });
    asked.on("error", reject);
    asked.on("response", (response) => {
      response.resume();
      response.on("end", () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
      );
    });
    asked.end(JSON.stringify({ key: `user:${key}`, limit: { limit: 100_000, window: 60_000 } }));
  });
}

/** Requests per second, and CPU per request. */
async function round({ url, pid }) {
  let next = 0;
  const cpu = cpuMs(pid);
  const start = performance.now();
  const lane = async () => {
    while (next < REQUESTS) await consume(url, next++ % KEYS);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
  const seconds = (performance.now() - start) / 1000;
  return { rate: REQUESTS / seconds, cpu: ((cpuMs(pid) - cpu) * 1000) / REQUESTS };
}

/** What a process has used of the processors; a tick is 10 ms. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const results = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
for (const worker of Object.values(contestants)) await round(worker);
for (let turn = 0; turn < ROUNDS; turn += 1) {
  for (const [name, worker] of Object.entries(contestants)) results[name].push(await round(worker));
}
const rates = {};
for (const [name, rounds] of Object.entries(results)) {
  rates[name] = median(rounds.map(({ rate }) => rate));
  const cpu = median(rounds.map((one) => one.cpu));
  console.log(
    `${name}: ${rates[name].toFixed(0)} requests/s, ${cpu.toFixed(0)} µs of CPU each, all in`,
  );
}
const [rust, hand] = Object.values(rates);
console.log(`ratio: ${(rust / hand).toFixed(2)}`);

/** CPU of a workerd until its Worker has answered for the first time. */
async function startUp(source) {
  const worker = await serve({ env, source });
  try {
    await (await fetch(`${worker.url}/healthz`)).text();
    return cpuMs(worker.pid);
  } finally {
    await worker.stop();
  }
}

const starts = { ours: [], empty: [] };
for (let turn = 0; turn < 9; turn += 1) {
  starts.ours.push(await startUp());
  starts.empty.push(await startUp(byHand));
}
const extra = median(starts.ours) - median(starts.empty);
console.log(`start-up: ${extra} ms of CPU more than a Worker without WebAssembly`);

agent.destroy();
for (const worker of Object.values(contestants)) await worker.stop();
