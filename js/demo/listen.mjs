import { once } from "node:events";
import { isIPv6 } from "node:net";

/** Listens, and says where. */
export async function listen(server, { host, port }) {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const reason =
      error.code === "EADDRINUSE" ? "in use, choose another with --port" : error.message;
    throw new Error(`port ${port} of ${host}: ${reason}`);
  }
  console.log(`tidegate demo: ${address(host, server.address().port)}`);
}

function address(host, port) {
  if (host === "127.0.0.1") return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
