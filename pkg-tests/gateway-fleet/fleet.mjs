// Three gateways in processes of their own that share one Redis, and real clients of theirs.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Redis } from "ioredis";
import { io as connectTo } from "socket.io-client";
import { Server } from "../redis/servers.mjs";

const NODES = 3;

export class Fleet {
  static async start(adapter) {
    const server = await Server.start();
    const env = { ...process.env, ADAPTER: adapter, REDIS_PORT: String(server.port) };
    const programs = adapter === "cluster" ? ["primary.mjs"] : Array(NODES).fill("node.mjs");
    const processes = programs.map((name) => fork(join(import.meta.dirname, name), { env }));
    const said = await Promise.all(processes.map((child) => once(child, "message")));
    return new Fleet(
      server,
      processes,
      said.map(([{ url }]) => url),
    );
  }

  #server;
  #clients = new Set();

  constructor(server, processes, urls) {
    this.#server = server;
    this.processes = processes;
    /** One address of each node; the same for all where they share one. */
    this.urls = Array.from({ length: NODES }, (_, at) => urls[at % urls.length]);
    this.book = new Redis(server.port);
  }

  async client(node, options = {}, namespace = "/") {
    const client = connectTo(this.urls[node] + namespace, {
      transports: ["websocket"],
      forceNew: true,
      reconnectionDelay: 1,
      reconnectionDelayMax: 10,
      ...options,
    });
    this.#clients.add(client);
    await once(client, "connect");
    return client;
  }

  /** What the nodes have handled of these messages, sorted. */
  async handled(isOurs) {
    return (await this.book.lrange("handled", 0, -1)).filter(isOurs).sort();
  }

  async stop() {
    for (const client of this.#clients) client.disconnect();
    this.book.disconnect();
    const ended = this.processes.map((child) => child.exitCode ?? once(child, "exit"));
    for (const child of this.processes) if (child.connected) child.disconnect();
    await Promise.all(ended);
    await this.#server.stop();
  }
}

export const as = (user) => ({ auth: { user } });

/** The client's next connection is to another node, and its present one is cut. */
export async function move(client, url) {
  const connected = once(client, "connect");
  client.io.uri = url;
  client.io.engine.close();
  await connected;
}
