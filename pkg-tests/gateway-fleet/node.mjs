// One gateway of a fleet, in a process of its own: whose adapter, and where Redis is, the environment says. What it
// handles, and the bursts that it is told of, it writes down in Redis, where the tests find it.

import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { createAdapter as clusterAdapter } from "@socket.io/cluster-adapter";
import { createAdapter as redisAdapter } from "@socket.io/redis-adapter";
import { createAdapter as streamsAdapter } from "@socket.io/redis-streams-adapter";
import { setupWorker } from "@socket.io/sticky";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";

const redis = () => new Redis(process.env.REDIS_PORT);
const book = redis();
const adapters = {
  redis: () => redisAdapter(redis(), redis()),
  streams: () => streamsAdapter(redis()),
  cluster: () => clusterAdapter(),
};

const http = createServer();
const io = new Server(http, {
  adapter: adapters[process.env.ADAPTER](),
  ...(process.env.ADAPTER === "streams" && { connectionStateRecovery: {} }),
});
const gateway = createGateway({
  store: new RedisStore(redis()),
  timeout: "5s",
  connect: { limit: { limit: 1_000, window: "1h" } },
  events: {
    order: { limit: { limit: 1_000, window: "1h" }, dedup: { lease: "10s" } },
    chat: { limit: { algorithm: "fixed-window", limit: 5, window: "1h" } },
  },
  burst: {
    threshold: 20,
    window: "1h",
    when: (socket) => socket.handshake.auth.isFlooder === true,
    onBurst: async ({ count }) => book.rpush("bursts", String(count)),
  },
}).register(io);

function welcome(socket) {
  const { nsp, data, recovered } = socket;
  if (data.userId !== undefined && !recovered) socket.join(data.userId);
  gateway.on(socket, "order", async ({ mid, takesMs = 0 }) => {
    await book.rpush("begun", mid);
    await pause(takesMs);
    await book.rpush("handled", `${nsp.name} ${mid}`);
    nsp.to(data.userId ?? socket.id).emit("ordered", mid);
    return { mid, node: process.pid, at: process.hrtime.bigint().toString() };
  });
  gateway.on(socket, "chat", () => ({ node: process.pid }));
}

for (const namespace of [io.of("/"), io.of("/admin")]) {
  namespace.use((socket, next) => {
    if (socket.handshake.auth.user !== undefined) socket.data.userId = socket.handshake.auth.user;
    next();
  });
  namespace.on("connection", welcome);
}

process.on("message", async (message) => {
  if (message !== "close") return;
  await gateway.close();
  process.exit();
});
process.on("disconnect", () => process.exit());

if (cluster.isWorker) setupWorker(io);
else {
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  process.send({ url: `http://127.0.0.1:${http.address().port}` });
}
