// A server whose own code throws, in a process that survives that. Run by a test; tells what happens on its output.

import { once } from "node:events";
import { createServer } from "node:http";
import { Server } from "socket.io";
import { io as connectTo } from "socket.io-client";
import { createGateway } from "tidegate/socket.io";
import { Database } from "./harness.mjs";

process.on("uncaughtException", (error) => console.log(`uncaught: ${error.message}`));

const http = createServer();
const io = new Server(http);
createGateway({
  store: new Database().store(),
  events: { chat: { limit: { limit: 100, window: "1s" } }, order: { dedup: { lease: "1h" } } },
}).register(io);

let throws = true;
io.on("connection", (socket) => {
  socket.use(([event, payload], next) => {
    if (event === "chat" && payload === "throw") throw new Error("in a middleware");
    next();
  });
  socket.on("chat", (_, acknowledge) => acknowledge(true));
  socket.on("order", (_, acknowledge) => {
    if (throws) {
      throws = false;
      throw new Error("in a handler");
    }
    acknowledge(true);
  });
});
http.listen(0, "127.0.0.1");
await once(http, "listening");

const client = connectTo(`http://127.0.0.1:${http.address().port}`, { transports: ["websocket"] });
client.emit("chat", "throw", () => {});
console.log(`after the middleware: ${await client.emitWithAck("chat", "go on")}`);
const refused = await client.emitWithAck("order", { mid: "a" });
console.log(`the handler: ${refused.error.code}`);
console.log(`after the handler: ${await client.emitWithAck("order", { mid: "a" })}`);
process.exit();
