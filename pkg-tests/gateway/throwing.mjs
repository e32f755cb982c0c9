// A server whose own code fails in every way, in a process that survives that. Run by a test; tells what happens on
// its output.

import { once } from "node:events";
import { createServer } from "node:http";

import { io as connectTo } from "socket.io-client";
import { createGateway } from "tidegate/socket.io";
import { Database, Server } from "./harness.mjs";

process.on("uncaughtException", (error, origin) => console.log(`${origin}: ${error.message}`));

const http = createServer();
const io = new Server(http);
const dedup = { lease: "1h" };
createGateway({
  store: new Database().store(),
  events: {
    chat: { limit: { limit: 100, window: "1s" } },
    ...{ order: { dedup }, later: { dedup }, both: { dedup }, heeded: { dedup } },
  },
}).register(io);

const failed = new Set();
/** Throws the first time that it is asked to. */
function failOnce(where) {
  if (failed.has(where)) return;
  failed.add(where);
  throw new Error(`in ${where}`);
}

io.on("connection", (socket) => {
  socket.use(([event, payload], next) => {
    if (event === "chat" && payload === "throw") throw new Error("in a middleware");
    next();
  });
  socket.on("chat", (_, acknowledge) => acknowledge(true));
  socket.on("order", (_, acknowledge) => {
    failOnce("a handler");
    acknowledge(true);
  });
  socket.on("later", async (_, acknowledge) => {
    await null;
    failOnce("an async handler");
    acknowledge(true);
  });
  // One of two fails: the other is still at work, and answers.
  socket.on("both", async () => {
    await null;
    failOnce("one of two handlers");
  });
  socket.on("both", (_, acknowledge) => setTimeout(acknowledge, 20, true));
  socket.on("heeded", (_, acknowledge) => {
    const failing = Promise.reject(new Error("a failure that is taken care of"));
    failing.catch(() => acknowledge(true));
    return failing;
  });
});
http.listen(0, "127.0.0.1");
await once(http, "listening");

const client = connectTo(`http://127.0.0.1:${http.address().port}`, { transports: ["websocket"] });
const told = async (event, mid) => {
  const answer = await client.timeout(5_000).emitWithAck(event, { mid });
  console.log(`${event} ${mid}: ${answer.error?.code ?? answer}`);
};
client.emit("chat", "throw", () => {});
console.log(`after the middleware: ${await client.emitWithAck("chat", "go on")}`);
await told("order", "a");
await told("order", "a");
await told("later", "a");
await told("later", "a");
await told("both", "a");
await told("heeded", "a");
client.emit("order", { mid: "b" }, "no function");
await told("order", "b");
process.exit();
