// One gateway of the fleet. Connections come from the process that listens.

import { createServer } from "node:http";
import { createAdapter } from "@socket.io/cluster-adapter";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { RedisStore } from "tidegate/redis";
import { guard } from "./gateway.mjs";
import { servePage } from "./page.mjs";

const number = Number(process.env.NODE);
const http = createServer(servePage);
const io = new Server(http, { adapter: createAdapter(), transports: ["websocket"] });
const client = new Redis(Number(process.env.REDIS_PORT));
const store = new RedisStore(client);
const burst = {
  threshold: 10,
  window: 10_000,
  cooldown: 60_000,
  // Every visitor of the demo is somebody; a real server would leave its users alone.
  when: () => true,
  onBurst: ({ count }) => io.emit("alarm", { node: number, count }),
};
const gateway = guard(io, store, { burst }, number);
io.on("connection", (socket) => socket.emit("fleet", Number(process.env.NODES)));

async function stop() {
  await gateway.close();
  await io.close();
  client.disconnect();
  process.exit();
}

process.on("message", (message, socket) => {
  if (message === "stop") void stop();
  else if (socket) {
    http.emit("connection", socket);
    socket.emit("data", Buffer.from(message, "base64"));
    socket.resume();
  }
});
// A Ctrl-C reaches every process of the terminal; the one that started this says when to stop.
process.on("SIGINT", () => {});
process.send("ready");
