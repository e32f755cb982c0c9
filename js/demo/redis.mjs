import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const programs = ["valkey-server", "redis-server"];

const advice = `--fleet needs a Valkey or Redis server on this machine, and found neither ${programs.join(" nor ")}.
  Debian, Ubuntu:  apt-get install valkey-server   (or redis-server)
  macOS:           brew install valkey`;

/** Becomes the program, and ends it when the other end of file 3 is closed: when whoever started it is gone, however. */
const whileHeld = '{ read _; kill $$; } <&3 >/dev/null & exec "$0" "$@" 3<&-';

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts the machine's own Valkey or Redis, for this machine only and without a trace on its disk. */
export async function startRedis() {
  const program = programs.find((name) => spawnSync(name, ["--version"]).status === 0);
  if (program === undefined) throw new Error(advice);
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const server = spawn("sh", ["-c", whileHeld, program, ...args], {
    stdio: ["ignore", "pipe", "ignore", "pipe"],
    // In a group of its own: a Ctrl-C at the terminal must not end it before those who use it.
    detached: true,
  });
  const held = server.stdio[3];
  held.unref();
  let said = "";
  for await (const chunk of server.stdout) {
    said += chunk;
    if (/ready to accept connections/i.test(said)) break;
  }
  if (server.exitCode !== null) throw new Error(`${program} ended: ${said}`);
  return { program, port, stop: () => held.destroy() };
}
