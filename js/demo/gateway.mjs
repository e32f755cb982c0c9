import { setTimeout as pause } from "node:timers/promises";
import { Limiter, onEvent } from "tidegate";
import { createGateway } from "tidegate/socket.io";
import { rules } from "./rules.mjs";

// Long enough that the second of two deliveries meets the first one at work.
const ORDER_TAKES_MS = 300;
const GUEST = /^guest-[0-9a-f]{8}$/;

/**
 * A gateway in front of the demo's handlers. `options` are what it has beyond the rules; `node` is put into every
 * acknowledgement.
 */
export function guard(io, store, options = {}, node = undefined) {
  const gateway = createGateway({ store, events: rules, ...options }).register(io);

  // A guest is whoever says so; a real server would take its user from a session that it has checked.
  io.use((socket, next) => {
    const { user } = socket.handshake.auth;
    if (GUEST.test(user)) socket.data.userId = user;
    next();
  });

  let messages = 0;
  let orders = 0;
  io.on("connection", (socket) => {
    gateway.on(socket, "chat", () => ({ ok: true, message: ++messages, node }));
    gateway.on(socket, "order", async () => {
      await pause(ORDER_TAKES_MS);
      return { ok: true, order: ++orders, node, at: new Date().toISOString() };
    });
  });
  showBudgets(io, store);
  return gateway;
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
