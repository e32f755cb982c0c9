import { createServer } from "node:http";
import { Server } from "socket.io";
import { MemoryStore } from "tidegate";
import { serveFleet } from "./fleet.mjs";
import { guard } from "./gateway.mjs";
import { listen } from "./listen.mjs";
import { readOptions, usage } from "./options.mjs";
import { servePage } from "./page.mjs";

async function serve(options) {
  const http = createServer(servePage);
  const io = new Server(http);
  const store = new MemoryStore();
  const gateway = guard(io, store);

  async function stop() {
    await gateway.close();
    await io.close();
    await store.close();
  }
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  await listen(http, options);
}

try {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options.help) console.log(usage);
  else await (options.fleet ? serveFleet(options) : serve(options));
} catch (error) {
  console.error(`tidegate demo: ${error.message}`);
  process.exitCode = 1;
}
