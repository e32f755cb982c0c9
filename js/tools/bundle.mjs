// Few files instead of many, for those who import the package as it is: every file that Node.js reads costs it half a
// millisecond, and every "#wasm" that it resolves a whole one. Bundlers leave out whole modules better than parts of
// one, so they are given the modules themselves.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./shell.mjs";

const dist = join(root, "js/dist");
const main = "index.js";
/** The bytes of the modules of WebAssembly as text, which are there once for all. */
const bytes = ["wasm/gen/core.js", "wasm/gen/stores.js"];

const options = {
  absWorkingDir: dist,
  bundle: true,
  format: "esm",
  target: "es2022",
  platform: "neutral",
  packages: "external",
  logLevel: "warning",
};

/** What set-up installs, which is not there yet when these tools are first read. */
const build = async (what) => (await import("esbuild")).build(what);

/** Writes into dist/node a file for each entry, beside what they share. */
export async function bundle() {
  const shared = await modulesBehind(main);
  await build({ ...options, stdin: reexported(shared), outfile: "node/core.js", ...without([]) });
  await build({
    ...options,
    entryPoints: entries(),
    outdir: "node",
    splitting: true,
    chunkNames: "shared-[hash]",
    ...without(shared),
  });
}

function entries() {
  const { exports } = JSON.parse(readFileSync(join(root, "js/package.json"), "utf8"));
  const files = Object.values(exports).map((entry) => entry.default ?? entry);
  return files.filter((file) => file.endsWith(".js")).map((file) => file.replace("./dist/", ""));
}

/** What every user of the package loads. esbuild alone would cut it by who else needs which part, into a dozen files. */
async function modulesBehind(entry) {
  const bundled = { entryPoints: [entry], outdir: "node", write: false, metafile: true };
  const { metafile } = await build({ ...options, ...bundled, ...without([]) });
  return Object.keys(metafile.inputs).filter((file) => file !== entry);
}

/** All that they export. A name that two of them export would be missing, so that no import of it links. */
function reexported(files) {
  const lines = files.map((file) => `export * from "./${file}";`);
  return { contents: lines.join("\n"), resolveDir: dist };
}

/** Leaves these files to node/core.js, and the bytes where they are. */
function without(files) {
  const places = new Map(files.map((file) => [join(dist, file), "./core.js"]));
  for (const file of bytes) places.set(join(dist, file), `../${file}`);
  const placeOf = async ({ path, pluginData, ...asked }, resolve) => {
    if (pluginData === "resolving") return;
    const found = await resolve(path, { ...asked, pluginData: "resolving" });
    const place = places.get(found.path);
    return place && { path: place, external: true, sideEffects: false };
  };
  const setup = ({ onResolve, resolve }) =>
    onResolve({ filter: /^[.#]/ }, (asked) => placeOf(asked, resolve));
  return { plugins: [{ name: "without", setup }] };
}
