// Three gateways of Node's own cluster behind one address, each session with the one that began it.

import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { setupPrimary } from "@socket.io/cluster-adapter";
import { setupMaster } from "@socket.io/sticky";

const http = createServer();
setupMaster(http, { loadBalancingMethod: "round-robin" });
setupPrimary();
cluster.setupPrimary({ exec: join(import.meta.dirname, "node.mjs"), serialization: "advanced" });
const workers = [cluster.fork(), cluster.fork(), cluster.fork()];
await Promise.all(workers.map((worker) => once(worker, "online")));
http.listen(0, "127.0.0.1");
await once(http, "listening");
process.send({ url: `http://127.0.0.1:${http.address().port}` });
process.on("disconnect", () => process.exit());
