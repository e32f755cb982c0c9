// A process with a gateway that holds a share of a budget. It tells how much of it was spent, and goes on.

import { once } from "node:events";
import { createServer } from "node:http";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { io as connectTo } from "socket.io-client";
import { onEvent, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";

process.once("message", async ({ port, prefix, mode, limit, ending }) => {
  if (ending === "own") process.once("SIGTERM", () => setTimeout(() => process.exit(7), 300));
  const client = new Redis(port);
  client.on("error", () => {});
  const store = new TieredStore({
    l2: new RedisStore(client, { prefix }),
    mode,
    syncEvery: "1h",
  });
  const http = createServer();
  const io = new Server(http);
  const options = { store, identify: () => "user", events: { ping: { limit } } };
  const gateway = createGateway(options).register(io);
  // Another gateway of the same process has the same wish.
  createGateway(options);
  io.on("connection", (socket) => gateway.on(socket, "ping", () => ({ ok: true })));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const socket = connectTo(`http://127.0.0.1:${http.address().port}`, {
    transports: ["websocket"],
  });
  let key;
  onEvent((event) => {
    if (event.type === "decision") key = event.key;
  });
  let spent = 0;
  while (spent < 20) spent += (await socket.emitWithAck("ping", {})).ok ? 1 : 0;
  process.send({ spent, key });
  await once(process, "message");
  await gateway.close();
  process.send("closed");
});
process.on("disconnect", () => process.exit());
process.send("ready");
