// npm run bench: builds, measures the hot path row by row, each in a process of its own, and prints one table, which goes
// to table.md with the machine that it was measured on, and the growth of a decision to growth.svg. The name of a part
// measures that alone and writes nothing: "npm run bench -- memory" (decisions, memory, pauses, native, uploads, starting,
// growth), and so does part of a row's name: "npm run bench -- denied". Tables of their own have "tiers", "redis",
// "gateway" and "steps".

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../js/tools/build.mjs";
import { setup } from "../../js/tools/setup.mjs";
import { main, root, run } from "../../js/tools/shell.mjs";
import { pack } from "../pack.mjs";
import { curve } from "./curve.mjs";

/** The table, of contestants that are there once all is set up and built. */
let table;

const here = (name) => join(root, "pkg-tests/bench", name);

const measured = (script, name) =>
  run(process.execPath, ["--expose-gc", here(script), ...[name ?? []].flat().map(String)]).then(
    JSON.parse,
  );

const line = (cells) => console.log(`| ${cells.join(" | ")} |`);

const ofTiers = (name) => name.startsWith("tiers");

/** The whole table, written down. */
async function whole() {
  const found = await table.parts.decisions((name) => !ofTiers(name));
  const { decisions: _, ...others } = table.parts;
  for (const part of Object.values(others)) found.push(...(await part()));
  const series = await table.growth();
  found.push(...table.growthRows(series));
  const text = table.asMarkdown(found);
  console.log(text);
  writeFileSync(here("table.md"), `${table.machine()}\n\n${text}\n`);
  writeFileSync(here("growth.svg"), curve("A decision, with the keys in random order", series));
}

async function growing() {
  console.log(table.asMarkdown(table.growthRows(await table.growth())));
}

async function part(name) {
  console.log(table.asMarkdown(await table.parts[name](() => true)));
}

async function rowsNamed(name) {
  console.log(table.asMarkdown(await table.parts.decisions((row) => row.includes(name))));
}

async function tiers() {
  console.log(table.asMarkdown(await table.parts.decisions(ofTiers)));
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

async function steps() {
  line(["step", "ns"]);
  line(["---", "---:"]);
  const [{ figures }] = await measured("native.mjs", "steps");
  for (const { who, value } of figures) line([who, value.toFixed(1)]);
}

const IN_FLIGHT = [1, 16, 64, 256, 1_000];
const FIGURES = ["perSecond", "p50", "p99", "clientMicros", "serverMicros"];

/** The ratio is to the last line of the same number in flight. */
async function redis() {
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
  console.log(`${(await run(process.execPath, [here("gateway.mjs")])).trimEnd()}`);
}

const tables = { growth: growing, tiers, redis, gateway, steps };

await main(import.meta, async () => {
  const wanted = process.argv[2];
  await setup();
  await build();
  await pack();
  table = await import("./table.mjs");
  if (wanted === undefined) await whole();
  else if (wanted in tables) await tables[wanted]();
  else if (wanted in table.parts) await part(wanted);
  else await rowsNamed(wanted);
});
