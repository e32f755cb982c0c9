// npm run worker: builds the Rust Worker and runs it on a local workerd, on loopback. "-- --port 8787" says where.
// Its settings are taken from the environment, by the names that they have in wrangler.toml and as secrets.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildWorker, workerOutput } from "./build-worker.mjs";
import { setup } from "./setup.mjs";
import { main, Problem, root } from "./shell.mjs";

const settings = [
  "TIDEGATE_TOKEN",
  "TIDEGATE_SHARDS",
  "ORIGIN",
  "POLICIES",
  "UPSTASH_REDIS_REST_URL",
  "UPSTASH_REDIS_REST_TOKEN",
];

/** What its objects keep outlives it. */
const state = join(root, "target/worker-state");

await main(import.meta, async () => {
  const port = portFrom(process.argv.slice(2));
  await setup();
  await buildWorker();
  mkdirSync(state, { recursive: true });
  const config = join(workerOutput, "config.capnp");
  writeFileSync(config, configOf(port));
  const { default: workerd } = await import("workerd");
  const child = spawn(workerd.default, ["serve", "--control-fd=3", config], {
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  child.stdio[3].once("data", (line) => {
    console.log(`The Worker listens on http://127.0.0.1:${JSON.parse(line).port}`);
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill("SIGKILL"));
  child.on("exit", (code, signal) => {
    process.exitCode = signal === "SIGKILL" ? 0 : (code ?? 1);
  });
});

function portFrom(args) {
  const { values } = parseArgs({ args, options: { port: { type: "string", default: "8787" } } });
  const port = Number(values.port);
  if (/^\d+$/.test(values.port) && port < 65_536) return port;
  throw new Problem(`--port must be a whole number below 65536, but is ${values.port}`);
}

function configOf(port) {
  const text = JSON.stringify;
  const bindings = settings
    .filter((name) => process.env[name] !== undefined)
    .map((name) => `(name = ${text(name)}, fromEnvironment = ${text(name)}),`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private", "local"])),
    (name = "disk", disk = (path = ${text(state)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "index.js"),
    (name = "index_bg.wasm", wasm = embed "index_bg.wasm"),
  ],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "TIDEGATE_SHARD", durableObjectNamespace = "TidegateShard"),
    ${bindings.join("\n    ")}
  ],
  durableObjectNamespaces = [(className = "TidegateShard", uniqueKey = "tidegate", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}
