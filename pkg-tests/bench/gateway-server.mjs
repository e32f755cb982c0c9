// One Socket.IO server in a process of its own: what it does in front of its handler is named on the command line.
// Tells its parent where it listens, and then the processor time and the heap that it has used, whenever it is asked.

import { once } from "node:events";
import { createServer } from "node:http";
import { Redis } from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { Server } from "socket.io";
import { MemoryStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";

const [kind, redisPort] = process.argv.slice(2);
const limit = { limit: 1_000_000_000, window: "1m" };
const events = { order: { limit, dedup: { ttl: "1m" } } };
const answer = () => ({ ok: true });

/** What a gateway does, by the means of others: a budget per address and an id of one's own per message. */
function byHand(client) {
  const limiter = new RateLimiterRedis({
    storeClient: client,
    points: 1_000_000_000,
    duration: 60,
  });
  return async ({ id, handshake }, { mid }, ack) => {
    try {
      await limiter.consume(handshake.address);
    } catch {
      return ack({ ok: false });
    }
    const first = await client.set(`seen:${id}:${mid}`, "1", "PX", 60_000, "NX");
    ack(first === null ? { ok: true, duplicate: true } : answer());
  };
}

const attached = (io, options) => {
  const gateway = createGateway({ events, ...options }).register(io);
  return (socket) => gateway.on(socket, "order", answer);
};

const kinds = {
  bare: () => (socket) => socket.on("order", async (_, ack) => ack(answer())),
  gateway: (io) => attached(io, { store: new MemoryStore() }),
  "gateway, a handler of socket.on": (io) => {
    createGateway({ events, store: new MemoryStore() }).register(io);
    return (socket) => socket.on("order", async (_, ack) => ack(answer()));
  },
  "gateway on Redis": (io) =>
    attached(io, { store: new RedisStore(new Redis(redisPort)), timeout: "10s" }),
  "rate-limiter-flexible and SET NX": () => {
    const decide = byHand(new Redis(redisPort));
    return (socket) => socket.on("order", (order, ack) => decide(socket, order, ack));
  },
};

const http = createServer();
const io = new Server(http, { serveClient: false });
io.on("connection", kinds[kind](io));
http.listen(0, "127.0.0.1");
await once(http, "listening");

/** The heap without what nobody holds any more. */
async function heap() {
  for (let rest = 0; rest < 3; rest += 1) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().heapUsed;
}

const asked = { cpu: () => process.cpuUsage(), heap };
process.on("message", async (what) => process.send(await asked[what]()));
process.send({ url: `http://127.0.0.1:${http.address().port}` });
process.on("disconnect", () => process.exit());
