// Workers on a real workerd, on loopback, which live as long as the test.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import workerd from "workerd";

const CONFIG = "config.capnp";

/** A module and all that it imports in one file, as tools for Workers bundle it; WebAssembly stays beside it. */
export async function bundleWorker(source, resolveDir, outdir) {
  const { warnings } = await build({
    stdin: { contents: source, resolveDir },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    loader: { ".wasm": "copy" },
    outfile: join(outdir, "worker.js"),
    logLevel: "silent",
  });
  if (warnings.length > 0) throw new Error(JSON.stringify(warnings));
}

/**
 * Starts a Worker, and answers where it listens.
 *
 * @param source the text of its module, whose imports are resolved from `resolveDir`
 * @param options.env the texts in its environment, and what else JSON can say
 * @param options.date its compatibility date; the newest by default
 * @param options.flags its compatibility flags
 * @param options.bindings what else is there, each as workerd's configuration has it: `(name = "DO", durableObjectNamespace = "Room")`
 * @param options.services what else runs beside it: `(name = "disk", disk = (path = "/tmp/x", writable = true))`
 * @param options.config more of its configuration: `durableObjectNamespaces = […], durableObjectStorage = (inMemory = void)`
 */
export async function startWorker(source, resolveDir, options = {}) {
  const directory = await buildWorker(source, resolveDir, options);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const worker = await runWorker(directory);
    const { stop } = worker;
    return Object.assign(worker, { stop: () => stop().then(remove) });
  } catch (error) {
    remove();
    throw error;
  }
}

/** Writes what workerd needs for a Worker into a new directory, and answers that. */
export async function buildWorker(source, resolveDir, options = {}) {
  const directory = mkdtempSync(join(tmpdir(), "tidegate-workerd-"));
  await bundleWorker(source, resolveDir, directory);
  writeFileSync(join(directory, CONFIG), configOf(directory, options));
  return directory;
}

/** Starts the Worker of such a directory. */
export async function runWorker(directory) {
  const child = spawn(workerd.default, ["serve", "--control-fd=3", join(directory, CONFIG)], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  const worker = { url: "", pid: child.pid, output: "", stop: () => stop(child) };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      worker.output += text;
    });
  }
  try {
    worker.url = `http://127.0.0.1:${await listening(child, worker)}`;
    return worker;
  } catch (error) {
    await worker.stop();
    throw error;
  }
}

function configOf(directory, options) {
  const {
    env = {},
    date = workerd.compatibilityDate,
    flags = [],
    bindings = [],
    services = [],
    config = "",
  } = options;
  const text = JSON.stringify;
  const wasm = readdirSync(directory).filter((file) => file.endsWith(".wasm"));
  const texts = Object.entries(env).map(([name, value]) =>
    typeof value === "string"
      ? `(name = ${text(name)}, text = ${text(value)})`
      : `(name = ${text(name)}, json = ${text(text(value))})`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private", "local"])),
    ${services.join()}
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    ${wasm.map((file) => `(name = "${file}", wasm = embed "${file}")`).join()}
  ],
  compatibilityDate = ${text(date)},
  compatibilityFlags = [${flags.map((flag) => text(flag)).join()}],
  bindings = [${[...texts, ...bindings].join()}],
  ${config}
);
`;
}

/** The port that workerd reports when it is ready. */
function listening(child, worker) {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`workerd ended:\n${worker.output}`)));
    child.stdio[3].once("data", (line) => resolve(JSON.parse(line).port));
  });
}

async function stop(child) {
  if (child.exitCode === null) {
    const ended = once(child, "exit");
    // Asked kindly it would wait for what its requests wait for.
    child.kill("SIGKILL");
    await ended;
  }
}
