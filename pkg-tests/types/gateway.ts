// What users of the gateway may write, and what the compiler has to refuse. Never run.

import { Server } from "socket.io";
import { MemoryStore } from "tidegate";
import { createGateway, type Gateway } from "tidegate/socket.io";

const io = new Server();
const gateway: Gateway = createGateway({
  store: new MemoryStore(),
  connect: { limit: { limit: 10, window: "1m" }, maxSockets: 5 },
  events: {
    "*": { limit: { limit: 100, window: "1m" } },
    message: {
      limit: [{ limit: 5, window: "1s" }],
      cost: (args) => args.length,
      dedup: { ttl: "1h", id: (args) => (typeof args[0] === "string" ? args[0] : undefined) },
    },
  },
  onStoreError: "local",
}).register(io, { dryRun: true });

io.on("connection", (socket) => {
  gateway.on(socket, "message", async (text: string) => ({ ok: true, text }));
});
await gateway.close();

// @ts-expect-error there is nobody to catch it
createGateway({ onStoreError: "throw" });
// @ts-expect-error a rule is an object
createGateway({ events: { message: 5 } });
