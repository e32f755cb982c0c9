// Real servers on loopback, which live as long as the test.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";

/** What every test of a server runs on. */
export const KINDS = ["redis", "valkey"];

/** Under which name sentinels know the master. */
export const MASTER = "tidegate";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Asks again and again until it is so. */
export async function until(what, isSo, patienceMs = 20_000) {
  const deadline = Date.now() + patienceMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`still not so: ${what}`);
    await pause(10);
  }
}

const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
// A test that takes too long is ended so, and its servers with it.
process.once("SIGTERM", () => process.exit(1));

export const stopAll = (servers) => Promise.all(servers.map((server) => server.stop()));

/** A server without persistence. `signal`, `kill` and `restart` are what a machine does to it. */
export class Server {
  static async start(args = [], program = "redis-server") {
    const server = new Server(program, await freePort(), args);
    await server.restart();
    return server;
  }

  #process;
  #directory = mkdtempSync(join(tmpdir(), "tidegate-redis-"));

  constructor(program, port, args) {
    this.program = program;
    this.port = port;
    this.args = args;
  }

  async restart() {
    this.launch();
    await this.answers();
  }

  launch() {
    const address = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#directory];
    const args = [...address, "--save", "", "--appendonly", "no", ...this.args];
    if (this.program.endsWith("-sentinel")) args.unshift(this.#emptyFile("sentinel.conf"));
    const child = spawn(this.program, args, { stdio: "ignore" });
    child.unref(); // a test that failed does not wait for it
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
  }

  /** Waits until it does. */
  async answers() {
    const client = this.client();
    await until(`${this.program} answers`, async () => {
      if (!running.has(this.#process)) throw new Error(`${this.program} ended at once`);
      return (await client.ping().catch(() => "")) === "PONG";
    });
    client.disconnect();
  }

  /** A client of the test's own, beside the one under test. */
  client() {
    const client = new Redis(this.port, { retryStrategy: () => 20, maxRetriesPerRequest: 1 });
    return client.on("error", () => {});
  }

  /** Asks something with a client of its own, once. */
  async ask(...command) {
    const client = this.client();
    try {
      return await client.call(...command);
    } finally {
      client.disconnect();
    }
  }

  signal(name) {
    this.#process.kill(name);
  }

  async kill() {
    if (!running.has(this.#process)) return;
    this.#process.ref();
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }

  async stop() {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #emptyFile(name) {
    const path = join(this.#directory, name);
    writeFileSync(path, "");
    return path;
  }
}

/** Replicas are brought up to date at once. */
const REPLICATING = ["--repl-diskless-sync-delay", "0"];

const isLinked = async (replica) =>
  (await replica.ask("INFO", "replication")).includes("master_link_status:up");

/** A master with one replica, and three sentinels that watch them. */
export async function startSentinels(kind = "redis") {
  const master = await Server.start(REPLICATING, `${kind}-server`);
  const follows = ["--replicaof", "127.0.0.1", String(master.port)];
  const replica = await Server.start([...REPLICATING, ...follows], `${kind}-server`);
  await until("the replica follows", () => isLinked(replica));
  const sentinels = await Promise.all([1, 2, 3].map(() => Server.start([], `${kind}-sentinel`)));
  for (const sentinel of sentinels) {
    await sentinel.ask("SENTINEL", "MONITOR", MASTER, "127.0.0.1", String(master.port), "2");
    const patience = ["down-after-milliseconds", "500", "failover-timeout", "1500"];
    await sentinel.ask("SENTINEL", "SET", MASTER, ...patience);
  }
  for (const sentinel of sentinels) {
    await until("the sentinels know each other", async () => {
      const known = (await sentinel.ask("INFO", "sentinel")).match(/slaves=(\d+),sentinels=(\d+)/);
      return known?.[1] === "1" && known[2] === "3";
    });
  }
  return { master, replica, sentinels, all: [...sentinels, replica, master] };
}

const MASTERS = 3;
const SLOTS = 16_384;

/** Three masters that share the slots, and as many replicas of each as are asked for: first all masters, then the rest. */
export async function startCluster({ kind = "redis", replicas = 0, args = () => [] } = {}) {
  const count = MASTERS * (1 + replicas);
  const buses = await Promise.all(Array.from({ length: count }, freePort));
  const servers = await Promise.all(
    buses.map((bus, at) => {
      const cluster = ["--cluster-enabled", "yes", "--cluster-port", String(bus)];
      const patience = ["--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0"];
      const all = [...cluster, ...patience, ...REPLICATING, ...args(at)];
      return Server.start(all, `${kind}-server`);
    }),
  );
  const masters = servers.slice(0, MASTERS);
  for (const [at, master] of masters.entries()) {
    const [first, last] = [at, at + 1].map((share) => Math.floor((share * SLOTS) / MASTERS));
    await master.ask("CLUSTER", "ADDSLOTSRANGE", first, last - 1);
  }
  for (const server of servers.slice(1)) {
    await server.ask("CLUSTER", "MEET", "127.0.0.1", servers[0].port, buses[0]);
  }
  await Promise.all(servers.map((server) => knowsCluster(server, count)));
  await Promise.all(
    servers.slice(MASTERS).map(async (replica, at) => {
      const id = await masters[at % MASTERS].ask("CLUSTER", "MYID");
      await replica.ask("CLUSTER", "REPLICATE", id);
      await until("the replica follows", () => isLinked(replica));
    }),
  );
  return servers;
}

async function knowsCluster(server, count) {
  await until("the cluster is whole", async () => {
    const info = await server.ask("CLUSTER", "INFO");
    return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${count}\r`);
  });
}
