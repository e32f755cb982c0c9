// Real servers on loopback, which live as long as the test.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A server without persistence. `stop` and `restart` are what a machine does to it. */
export class Server {
  static async start(args = [], program = "redis-server") {
    const server = new Server(program, await freePort(), args);
    await server.#run();
    return server;
  }

  #process;
  #directory = mkdtempSync(join(tmpdir(), "tidegate-redis-"));

  constructor(program, port, args) {
    this.program = program;
    this.port = port;
    this.args = args;
  }

  async #run() {
    const address = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#directory];
    const args = [...address, "--save", "", "--appendonly", "no", ...this.args];
    this.#process = spawn(this.program, args, { stdio: "ignore" });
    const client = new Redis(this.port, { retryStrategy: () => 50, maxRetriesPerRequest: null });
    client.on("error", () => {});
    await client.ping();
    client.disconnect();
  }

  signal(name) {
    this.#process.kill(name);
  }

  async kill() {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }

  async restart() {
    await this.#run();
  }

  async stop() {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const SLOTS = 16_384;

/** Three masters that share the slots. */
export async function startCluster() {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  const servers = await Promise.all([1, 2, 3].map(() => Server.start(args)));
  const clients = servers.map(({ port }) => new Redis(port));
  for (const [at, client] of clients.entries()) {
    const [first, last] = [at, at + 1].map((share) => Math.floor((share * SLOTS) / clients.length));
    await client.cluster("ADDSLOTSRANGE", first, last - 1);
    if (at > 0) await client.cluster("MEET", "127.0.0.1", servers[0].port);
  }
  for (const client of clients) {
    while (!(await client.cluster("INFO")).includes("cluster_state:ok")) await pause(50);
    client.disconnect();
  }
  return servers;
}
