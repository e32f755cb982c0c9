// Builds the npm package into js/dist: the Rust core as WebAssembly, and the TypeScript around it.
// Each of the two stages is skipped while nothing that goes into it has changed.

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle } from "./bundle.mjs";
import { sbom } from "./sbom.mjs";
import { setup, wasmBindgenCommand, wasmEnvironment } from "./setup.mjs";
import {
  capture,
  cargoHome,
  filesBelow,
  fingerprint,
  main,
  readIfThere,
  root,
  run,
  step,
  targetDir,
} from "./shell.mjs";

const wasmTarget = "wasm32-unknown-unknown";
const gen = join(root, "js/src/wasm/gen");
const dist = join(root, "js/dist");
const scripts = "src/store/redis";

/** Speed first: -Oz would save 2 % of the bytes, and nothing once they are compressed. Low memory is the end of the stack. */
const optimisation = ["-O3", "--converge", "--low-memory-unused"];
/** What rustc lets a WebAssembly module use by default. */
const wasmFeatures = [
  "--enable-bulk-memory",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
];

export const rustFlags = [
  // Panic messages name source files: by a path that says nothing about the machine that built them.
  `--remap-path-prefix=${cargoHome}=cargo`,
  `--remap-path-prefix=${root}=tidegate`,
  // SHA-256 in a loop and not unrolled: a tenth of the bytes, and no decision waits for it.
  '--cfg=sha2_backend_soft="compact"',
];

export async function build() {
  await stage(gen, wasmInputs(), "WebAssembly", "40 s", buildWasm);
  await stage(dist, packageInputs(), "the npm package", "3 s", buildPackage);
}

/** Fills a directory anew, unless what went into it last time is what would go into it now. */
export async function stage(output, inputs, title, usually, fill) {
  const stamp = join(output, ".stamp");
  if (readIfThere(stamp) === inputs) return;
  await step(title, usually, async () => {
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
    await fill();
    writeFileSync(stamp, inputs);
  });
}

/** What goes into WebAssembly: the crate, the tools, and whatever tells them what to do. */
export function wasmInputs(...more) {
  const files = filesBelow([
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "src",
    "package-lock.json",
    import.meta.filename,
    ...more,
  ]);
  return fingerprint(files, capture("rustc", ["--version"], wasmEnvironment()));
}

/** The core, and stores that not everybody has: a module each. */
const modules = ["core", "stores"];

async function buildWasm() {
  cpSync(await compiled("npm"), join(gen, "core.wasm"));
  await bindgen(await compiled("npm-stores"), "stores.wasm");
  for (const name of modules) {
    const wasm = join(gen, `${name}.wasm`);
    await optimise(wasm, ...optimisation);
    const base64 = readFileSync(wasm).toString("base64");
    writeFileSync(join(gen, `${name}.ts`), `export const base64: string =\n  "${base64}";\n`);
  }
}

/** The crate with a feature, as WebAssembly. */
async function compiled(feature) {
  const flags = `target.${wasmTarget}.rustflags=${JSON.stringify(rustFlags)}`;
  await run(
    "cargo",
    ["build", "--release", "--lib", "--features", feature].concat(
      ...[["--target", wasmTarget], "--config", flags],
    ),
    { env: wasmEnvironment() },
  );
  return join(targetDir, wasmTarget, "release/tidegate.wasm");
}

/** Writes a module that needs glue, and glue.js beside it. Who loads it hands over the module, wherever its file is. */
async function bindgen(wasm, output) {
  const names = ["--out-name", "glue", "--out-dir", gen];
  const options = ["--target", "web", "--omit-default-module-path", ...names];
  await run(wasmBindgenCommand(), [wasm, ...options]);
  renameSync(join(gen, "glue_bg.wasm"), join(gen, output));
}

/** Makes a module smaller and faster, and takes out what is only for debuggers. */
export async function optimise(wasm, ...options) {
  const strip = ["--strip-debug", "--strip-producers", "--strip-target-features"];
  await run(process.execPath, [
    join(root, "node_modules/binaryen/bin/wasm-opt"),
    ...[...wasmFeatures, ...options, ...strip, wasm, "-o", wasm],
  ]);
}

function packageInputs() {
  const files = filesBelow([
    "js/src",
    scripts,
    "js/tsconfig.json",
    "js/package.json",
    "js/tools/bundle.mjs",
    "js/tools/sbom.mjs",
    "Cargo.lock",
    "LICENSE",
    "README.md",
  ]);
  return fingerprint(files);
}

async function buildPackage() {
  embedScripts();
  await run(process.execPath, [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    join(root, "js"),
  ]);
  const generated = (name, mended) =>
    writeFileSync(join(dist, "wasm/gen", name), mended(readFileSync(join(gen, name), "utf8")));
  generated("glue.js", shakeable);
  generated("glue.d.ts", publicTypes);
  for (const name of modules) {
    cpSync(join(gen, `${name}.wasm`), join(dist, `wasm/gen/${name}.wasm`));
  }
  await bundle();
  writeFileSync(join(dist, "sbom.cdx.json"), `${JSON.stringify(sbom(), undefined, 2)}\n`);
  // npm packs what lies beside the manifest.
  for (const name of ["LICENSE", "README.md"]) cpSync(join(root, name), join(root, "js", name));
}

/** The glue, without what keeps bundlers from leaving out the classes that nobody uses. */
function shakeable(glue) {
  return glue
    .replace(/^if \(Symbol\.dispose\) .*\n/gm, "")
    .replaceAll(": new FinalizationRegistry(", ": /* @__PURE__ */ new FinalizationRegistry(");
}

/** Its types as users' compilers read them, which must not need the newest library or the DOM's for them. */
function publicTypes(types) {
  return types
    .replace(/^ *\[Symbol\.dispose\].*\n/gm, "")
    .replace(/^export type InitInput[\s\S]*/m, "");
}

/** The Lua text for whoever sends it, with the hash by which the server knows it. */
function embedScripts() {
  const constant = ([name, file]) => {
    const text = withoutComments(readFileSync(join(root, scripts, file), "utf8"));
    const sha = createHash("sha1").update(text).digest("hex");
    return `export const ${name}: { readonly text: string; readonly sha: string } = ${JSON.stringify({ text, sha })};\n`;
  };
  const constants = Object.entries({ step: "step.lua", isCluster: "cluster.lua" }).map(constant);
  const output = join(root, "js/src/redis/gen");
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, "script.ts"), constants.join(""));
}

/** As build.rs does it, so that a Worker and the package run one script on a server. */
function withoutComments(lua) {
  const lines = lua.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("--")).join("\n");
}

/** What a user downloads: the wasm is what the budget is about. */
function sizes() {
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  const told = modules.map((name) => {
    const wasm = readFileSync(join(gen, `${name}.wasm`));
    const packed = gzipSync(wasm, { level: 9 }).length;
    return `${name}: ${kilobytes(wasm.length)}, ${kilobytes(packed)} with gzip`;
  });
  return told.join("; ");
}

await main(import.meta, async () => {
  await setup();
  await build();
  console.log(`The package is built. ${sizes()}.`);
});
