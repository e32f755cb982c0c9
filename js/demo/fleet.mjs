import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:net";
import { setupPrimary } from "@socket.io/cluster-adapter";
import { listen } from "./listen.mjs";
import { startRedis } from "./redis.mjs";

const NODES = 3;
/** A page asks for the node of each of its connections. */
const WANTED = /^GET \S*[?&]node=(\d)/;

/** Three gateways in processes of their own, behind one address. */
export async function serveFleet(options) {
  const redis = await startRedis();
  setupPrimary();
  cluster.setupPrimary({ exec: new URL("node.mjs", import.meta.url).pathname, args: [] });
  const nodes = Array.from({ length: NODES }, (_, at) =>
    cluster.fork({ NODE: String(at + 1), NODES: String(NODES), REDIS_PORT: String(redis.port) }),
  );
  await Promise.all(nodes.map((node) => once(node, "message")));
  const address = createServer({ pauseOnConnect: false }, (socket) => pass(socket, nodes));

  async function stop() {
    address.close();
    const ended = nodes.map((node) => once(node, "exit"));
    for (const node of nodes) node.send("stop");
    await Promise.all(ended);
    redis.stop();
  }
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  await listen(address, options);
  console.log(`${NODES} gateways in processes of their own share one ${redis.program}`);
}

/** Gives a connection to the node that it asks for, or to any, with what it has said so far. */
function pass(socket, nodes) {
  socket.on("error", () => {});
  socket.once("data", (head) => {
    socket.pause();
    const wanted = WANTED.exec(head.toString("latin1"));
    const node = nodes[wanted === null ? 0 : Number(wanted[1]) - 1] ?? nodes[0];
    node.send(head.toString("base64"), socket);
  });
}
