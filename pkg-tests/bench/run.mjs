// npm run bench: builds, measures each row in a process of its own, and prints one table. Part of a row's
// name chooses rows: "npm run bench -- denied". With "pauses" the pauses alone are measured, with "redis" the
// decisions on a server, with "size" what a Worker uploads, with "startup" how long programs and Workers take to start,
// with "native" the core as Rust hosts have it.

import { join } from "node:path";
import { build } from "../../js/tools/build.mjs";
import { setup } from "../../js/tools/setup.mjs";
import { main, root, run } from "../../js/tools/shell.mjs";
import { pack } from "../pack.mjs";
import { keepers } from "./contestants.mjs";
import { rows } from "./rows.mjs";

const here = (name) => join(root, "pkg-tests/bench", name);

const measured = (script, name) =>
  run(process.execPath, ["--expose-gc", here(script), ...[name ?? []].flat().map(String)]).then(
    JSON.parse,
  );

const line = (cells) => console.log(`| ${cells.join(" | ")} |`);

async function table(wanted) {
  line(["what", "who", "ns per call", "× tidegate"]);
  line(["---", "---", "---:", "---:"]);
  for (const row of Object.keys(rows).filter(wanted)) {
    for (const [index, { name, ns, ratio }] of (await measured("speed.mjs", row)).entries()) {
      line([index === 0 ? row : "", name, ns.toFixed(0), ratio.toFixed(2)]);
    }
  }
}

async function bytes() {
  console.log();
  line(["who keeps 300 000 keys", "bytes per key"]);
  line(["---", "---:"]);
  for (const name of Object.keys(keepers)) {
    line([name, (await measured("bytes.mjs", name)).toFixed(0)]);
  }
}

async function size() {
  console.log();
  line(["a Worker that limits", "minified", "JavaScript, gzip", "WebAssembly, gzip", "all"]);
  line(["---", "---:", "---:", "---:", "---:"]);
  const kilobytes = (count) => `${(count / 1000).toFixed(1)} KB`;
  for (const { name, minified, javascript, wasm } of await measured("size.mjs")) {
    line([name, ...[minified, javascript, wasm, javascript + wasm].map(kilobytes)]);
  }
}

async function operations() {
  console.log();
  line([
    "tiers, 100 keys for 2 s",
    "calls",
    "decided here",
    "operations of the shared store per 1 000 calls",
  ]);
  line(["---", "---:", "---:", "---:"]);
  for (const { name, calls, local, operations } of await measured("operations.mjs")) {
    line([name, calls, `${(100 * local).toFixed(2)} %`, ((1_000 * operations) / calls).toFixed(3)]);
  }
}

async function pauses() {
  // Marking a little at a time is the engine's too, but it tells of it only where it is one collection.
  const engine = ["--no-incremental-marking", "--max-old-space-size=8192"];
  const options = [...engine, here("pauses.mjs")];
  console.log(`\n${(await run(process.execPath, options)).trimEnd()}`);
}

const IN_FLIGHT = [1, 16, 64, 256, 1_000];
const FIGURES = ["perSecond", "p50", "p99", "clientMicros", "serverMicros"];

/** The ratio is to the last line of the same number in flight. */
async function redis() {
  console.log();
  line(["in flight", "who", "decisions/s", "×", "p50 ms", "p99 ms", "client µs", "server µs"]);
  line(["---:", "---", ...Array(6).fill("---:")]);
  for (const inFlight of IN_FLIGHT) {
    for (const [at, row] of (await measured("redis.mjs", inFlight)).entries()) {
      const [perSecond, p50, p99, client, server] = FIGURES.map((figure) => row[figure].value);
      const rate = [perSecond.toFixed(0), row.perSecond.ratio.toFixed(2)];
      const times = [p50.toFixed(3), p99.toFixed(2), client.toFixed(1), server.toFixed(1)];
      line([at === 0 ? inFlight : "", row.name, ...rate, ...times]);
    }
  }
  console.log();
  line(["65 536 keys on the server", "bytes per key", "as MEMORY USAGE tells"]);
  line(["---", "---:", "---:"]);
  for (const { name, used, told } of await measured("redis.mjs", "memory")) {
    line([name, used.toFixed(0), told]);
  }
}

async function gateway() {
  console.log(`\n${(await run(process.execPath, [here("gateway.mjs")])).trimEnd()}`);
}

async function startup() {
  console.log(`\n${(await run(process.execPath, [here("startup.mjs")])).trimEnd()}`);
}

async function native() {
  console.log(`\n${(await run(process.execPath, [here("native.mjs")])).trimEnd()}`);
}

const APART = ["pauses", "redis", "gateway", "size", "startup", "native"];

await main(import.meta, async () => {
  const part = process.argv[2] ?? "";
  await setup();
  await build();
  await pack();
  if (!APART.includes(part)) await table((name) => name.includes(part));
  if (part === "" || "tiers".includes(part)) await operations();
  if (part === "") await bytes();
  if (part === "" || part === "size") await size();
  if (part === "" || part === "startup") await startup();
  if (part === "" || part === "redis") await redis();
  if (part === "" || part === "gateway") await gateway();
  if (part === "" || part === "pauses") await pauses();
  if (part === "" || part === "native") await native();
});
