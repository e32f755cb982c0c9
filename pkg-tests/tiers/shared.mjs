// Stores to be shared by several nodes, whose operations are counted and can be made to fail.

import { Redis } from "ioredis";
import { Limiter, MemoryStore, storeFrom, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { Server } from "../redis/servers.mjs";

let prefixes = 0;

/** What happens to operations: "down" they fail, "hung" they never end; "lossy" they run, but what was written is not answered. */
class Line {
  operations = 0;
  state = "up";

  async carry(operations, run, isRead = false) {
    this.operations += operations;
    if (this.state === "hung") return new Promise(() => {});
    if (this.state === "down") throw new Error("the line is down");
    const answer = await run();
    if (this.state === "lossy" && !isRead) throw new Error("the answer was lost");
    return answer;
  }
}

/** A table in this process with a conditional write. */
export function sharedMap(clock = {}) {
  const rows = new Map();
  const line = new Line();
  const adapter = {
    get: (key) => line.carry(1, async () => rows.get(key) ?? null, true),
    compareAndSet: (key, expected, next) =>
      line.carry(0, async () => {
        if ((rows.get(key) ?? null) !== expected) return false;
        rows.set(key, next);
        return true;
      }),
    ...clock,
  };
  return { line, store: storeFrom(adapter) };
}

export function sharedMemory() {
  return { store: new MemoryStore() };
}

/** A real server; each shared store is a prefix of its own on it. */
export async function startRedis() {
  const server = await Server.start();
  const client = new Redis(server.port, { retryStrategy: () => 20 });
  client.on("error", () => {});
  const shared = () => {
    const line = new Line();
    const evalScript = (script, _sha, keys, args) =>
      line.carry(keys.length, () => client.eval(script, keys.length, ...keys, ...args));
    return { line, store: new RedisStore({ evalScript }, { prefix: `t${prefixes++}` }) };
  };
  const stop = async () => {
    client.disconnect();
    await server.stop();
  };
  return { server, client, shared, stop };
}

/** So many nodes in front of one store. */
export function nodesOf(count, l2, options) {
  return Array.from({ length: count }, () => new TieredStore({ l2, ...options }));
}

/** Calls one after the other; answers how many were admitted, and how many decisions were made without the shared store. */
export async function calls(count, limiterAt, key, options) {
  let admitted = 0;
  let local = 0;
  for (let at = 0; at < count; at += 1) {
    const decision = await limiterAt(at).consume(key, options);
    if (decision.allowed) admitted += options?.cost ?? 1;
    if (decision.local) local += 1;
  }
  return { admitted, local };
}

/** Nodes with a Limiter each, and how much of a key the shared store itself knows to be used. */
export function fleetOf(mode, count, store, limit, options = {}) {
  const timeout = "10s";
  const nodes = nodesOf(count, store, { mode, ...options });
  const limiters = nodes.map((store) => new Limiter({ limit, store, timeout }));
  const direct = new Limiter({ limit, store, timeout });
  return { nodes, limiters, used: async (key) => limit.limit - (await direct.peek(key)).remaining };
}
