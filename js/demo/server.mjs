import { once } from "node:events";
import { createServer } from "node:http";
import { isIPv6 } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Server } from "socket.io";
import { Limiter, MemoryStore, onEvent } from "tidegate";
import { createGateway } from "tidegate/socket.io";
import { readOptions, usage } from "./options.mjs";
import { servePage } from "./page.mjs";
import { rules } from "./rules.mjs";

// Long enough that the second of two deliveries meets the first one at work.
const ORDER_TAKES_MS = 300;
const GUEST = /^guest-[0-9a-f]{8}$/;

async function serve({ host, port }) {
  const http = createServer(servePage);
  const io = new Server(http);
  const store = new MemoryStore();
  const gateway = createGateway({ store, events: rules }).register(io);

  // A guest is whoever says so; a real server would take its user from a session that it has checked.
  io.use((socket, next) => {
    const { user } = socket.handshake.auth;
    if (GUEST.test(user)) socket.data.userId = user;
    next();
  });

  let messages = 0;
  let orders = 0;
  io.on("connection", (socket) => {
    gateway.on(socket, "chat", () => ({ ok: true, message: ++messages }));
    gateway.on(socket, "order", async () => {
      await pause(ORDER_TAKES_MS);
      return { ok: true, order: ++orders, at: new Date().toISOString() };
    });
  });
  showBudgets(io, store);

  async function stop() {
    await gateway.close();
    await io.close();
    await store.close();
  }
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);

  await listen(http, host, port);
  console.log(`tidegate demo: ${address(host, http.address().port)}`);
}

/** Tells a guest's pages what its budgets are: when one of them connects, and whenever the gateway decides. */
function showBudgets(io, store) {
  const limiters = Object.entries(rules).map(([event, { limit }]) => [
    event,
    new Limiter({ limit, store }),
  ]);
  io.on("connection", async (socket) => {
    const { userId } = socket.data;
    if (!userId) return;
    socket.join(userId);
    for (const [event, limiter] of limiters) {
      socket.emit("budget", event, await limiter.peek(`user:${userId}:/:${event}`));
    }
  });
  onEvent(({ type, key, decision }) => {
    if (type !== "decision") return;
    const [, userId, , event] = key.split(":");
    io.to(userId).emit("budget", event, decision);
  });
}

async function listen(http, host, port) {
  http.listen(port, host);
  try {
    await once(http, "listening");
  } catch (error) {
    const reason =
      error.code === "EADDRINUSE" ? "in use, choose another with --port" : error.message;
    throw new Error(`port ${port} of ${host}: ${reason}`);
  }
}

function address(host, port) {
  if (host === "127.0.0.1") return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

try {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options.help) console.log(usage);
  else await serve(options);
} catch (error) {
  console.error(`tidegate demo: ${error.message}`);
  process.exitCode = 1;
}
