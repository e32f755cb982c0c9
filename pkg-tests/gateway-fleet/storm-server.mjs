// A gateway that a storm comes over, in a process of its own. Tells how it fares when it is asked.

import { once } from "node:events";
import { createServer } from "node:http";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { MemoryStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";

const { REDIS_PORT } = process.env;
const http = createServer();
const io = new Server(http, { serveClient: false });
createGateway({
  store: REDIS_PORT ? new RedisStore(new Redis(REDIS_PORT)) : new MemoryStore(),
  timeout: "20s",
  connect: {
    limit: { limit: 1_000, window: "1h" },
    maxSockets: 1,
    identify: ({ handshake }) => handshake.auth.user,
  },
  // Even the budgets of sockets by their own names are not to be left behind.
  identify: (socket) => (socket.handshake.auth.isNamed ? socket.handshake.auth.user : socket.id),
  events: { chat: { limit: { limit: 3, window: "1h" } }, order: { dedup: { ttl: "1h" } } },
}).register(io);

let handled = 0;
io.on("connection", (socket) => {
  socket.on("chat", (_, acknowledge) => acknowledge({ ok: true }));
  socket.on("order", (_, acknowledge) => acknowledge({ ok: true, order: ++handled }));
});

async function state() {
  for (let rest = 0; rest < 3; rest += 1) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  return { handled, open: io.engine.clientsCount, heap: process.memoryUsage().heapUsed };
}

process.on("message", async () => process.send(await state()));
process.on("disconnect", () => process.exit());
http.listen(0, "127.0.0.1");
await once(http, "listening");
process.send({ url: `http://127.0.0.1:${http.address().port}` });
