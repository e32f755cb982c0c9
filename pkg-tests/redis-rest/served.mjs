// A server with a proxy in front of it.

import { spawnSync } from "node:child_process";
import { Redis } from "ioredis";
import { Server } from "../redis/servers.mjs";
import { RestProxy } from "./proxy.mjs";

const valkey = spawnSync("valkey-server", ["--version"]).status === 0;

/** Starts both, and a client that goes around the proxy. */
export async function serve() {
  const server = await Server.start([], valkey ? "valkey-server" : "redis-server");
  const client = new Redis(server.port);
  const proxy = await RestProxy.start(server.port);
  return {
    server,
    client,
    proxy,
    async stop() {
      client.disconnect();
      await proxy.stop();
      await server.stop();
    },
  };
}
