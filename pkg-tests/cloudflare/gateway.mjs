// One gateway of a fleet that shares the deployed Worker, in a process of its own.

import { createServer } from "node:http";
import { Server } from "socket.io";
import { EdgeStore } from "tidegate/cloudflare";
import { createGateway } from "tidegate/socket.io";

const http = createServer();
const io = new Server(http);
createGateway({
  store: new EdgeStore({ url: process.env.URL, token: process.env.TOKEN }),
  timeout: "5s",
  identify: () => "everybody",
  events: {
    chat: { limit: { limit: 20, window: "1h" } },
    order: { limit: { limit: 1_000, window: "1h" }, dedup: {} },
  },
}).register(io);
io.on("connection", (socket) => {
  socket.on("chat", (acknowledge) => acknowledge({ ok: true }));
  socket.on("order", (order, acknowledge) => acknowledge({ by: process.pid, item: order.item }));
});
http.listen(0, "127.0.0.1", () => process.send(http.address().port));
process.on("disconnect", () => process.exit());
