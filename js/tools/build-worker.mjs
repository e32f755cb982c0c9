// Builds the Rust Worker into target/worker, where wrangler and workerd take it from.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { optimise, rustFlags, stage, wasmInputs } from "./build.mjs";
import {
  setup,
  wasmBindgenCommand,
  wasmEnvironment,
  workerBuild,
  workerBuildCommand,
} from "./setup.mjs";
import { main, root, run } from "./shell.mjs";

export const workerOutput = join(root, "target/worker");
const wasm = join(workerOutput, "index_bg.wasm");

export async function buildWorker() {
  await workerBuild();
  await stage(workerOutput, wasmInputs(import.meta.filename), "the Worker", "90 s", fill);
}

async function fill() {
  const args = ["--release", "--no-opt", "--out-dir", workerOutput, "--features", "worker"];
  await run(workerBuildCommand(), args, {
    env: {
      ...wasmEnvironment(),
      CARGO_ENCODED_RUSTFLAGS: rustFlags.join("\x1f"),
      // It would fetch these from elsewhere.
      WASM_BINDGEN_BIN: wasmBindgenCommand(),
      ESBUILD_BIN: join(root, "node_modules/.bin/esbuild"),
    },
  });
  // What JavaScript throws is caught at every import, so that it cannot leave the module half done.
  await optimise(wasm, "-Oz", "--enable-exception-handling");
}

/** What is uploaded. */
export function workerSize() {
  const files = [wasm, join(workerOutput, "index.js")].map((path) => readFileSync(path));
  const packed = files.map((bytes) => gzipSync(bytes, { level: 9 }).length);
  const [ofWasm, ofScript] = packed.map((bytes) => `${(bytes / 1024).toFixed(1)} KiB`);
  return `with gzip: wasm ${ofWasm}, script ${ofScript}`;
}

await main(import.meta, async () => {
  await setup();
  await buildWorker();
  console.log(`The Worker is built. ${workerSize()}.`);
});
