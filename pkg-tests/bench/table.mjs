// The one table: what the hot path costs, beside peers and beside what nothing can be faster than. Each line has a
// figure with its unit, and the ratio to the first line of its row: above 1 is more than tidegate takes.

import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { root, run } from "../../js/tools/shell.mjs";
import { keepers } from "./contestants.mjs";
import { growers, keyCounts } from "./growth.mjs";
import { rows } from "./rows.mjs";

const script = (name) => join(root, "pkg-tests/bench", name);

/** Runs a script in a process of its own, and reads what it writes. */
async function measured(name, args = [], flags = []) {
  const all = ["--expose-gc", ...flags, script(name), ...args.map(String)];
  return JSON.parse(await run(process.execPath, all));
}

const unit =
  (name, digits = 0) =>
  (value) =>
    `${value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", " ")} ${name}`;
const nanoseconds = unit("ns");
const milliseconds = unit("ms", 1);
const bytes = unit("bytes");
const kilobytes = unit("KB", 1);

/** Lines of a row, with ratios to its first where none were measured. */
const row = (what, figures, told) => ({
  what,
  lines: figures.map(({ who, value, ratio = value / figures[0].value }) => ({
    who,
    figure: told(value),
    ratio,
  })),
});

async function decisions(wanted) {
  const found = [];
  for (const what of Object.keys(rows).filter(wanted)) {
    const figures = (await measured("speed.mjs", [what])).map(({ name, ns, ratio }) => ({
      who: name,
      value: ns,
      ratio,
    }));
    found.push(row(what, figures, nanoseconds));
  }
  return found;
}

async function memory() {
  const figures = [];
  for (const who of Object.keys(keepers)) {
    figures.push({ who, value: await measured("bytes.mjs", [who]) });
  }
  return [row("bytes per key, 300 000 keys", figures, bytes)];
}

async function pauses() {
  // Marking a little at a time is the engine's too, but it tells of it only where it is one collection.
  const flags = ["--no-incremental-marking", "--max-old-space-size=8192"];
  const told = await measured("pauses.mjs", [], flags);
  return told.map(({ what, figures }) => row(`longest pause: ${what}`, figures, milliseconds));
}

async function native() {
  const told = await measured("native.mjs", ["keyed"]);
  return told.map(({ what, figures }) => row(what, figures, nanoseconds));
}

async function uploads() {
  const figures = (await measured("size.mjs")).map(({ name, javascript, wasm }) => ({
    who: name,
    value: (javascript + wasm) / 1000,
  }));
  return [row("what a Worker uploads, with gzip", figures, kilobytes)];
}

async function starting() {
  const told = await measured("startup.mjs");
  return told.map(({ what, figures }) => row(what, figures, milliseconds));
}

/** Also what the picture is drawn from. */
export async function growth() {
  const series = [];
  for (const name of Object.keys(growers)) {
    const points = [];
    for (const keys of keyCounts) {
      const ns = await measured("growth.mjs", [name, keys], ["--max-old-space-size=12000"]);
      points.push([keys, ns]);
    }
    series.push({ name, points });
  }
  return series;
}

export const growthRows = (series) =>
  keyCounts.map((keys, at) => {
    const figures = series.map(({ name, points }) => ({ who: name, value: points[at][1] }));
    return row(`growth: ${unit("keys")(keys)}, in random order`, figures, nanoseconds);
  });

/** The parts of the table, by the name by which one of them can be had alone. */
export const parts = { decisions, memory, pauses, native, uploads, starting };

export function asMarkdown(found) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const lines = found.flatMap(({ what, lines }) =>
    lines.map(({ who, figure, ratio }, at) =>
      line([at === 0 ? what : "", who, figure, Number.isFinite(ratio) ? ratio.toFixed(2) : "–"]),
    ),
  );
  const head = ["what", "who", "figure", "× tidegate"];
  return [line(head), line(["---", "---", "---:", "---:"]), ...lines].join("\n");
}

/** On what it was measured. */
export function machine() {
  const [{ model }] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model.trim()}, ${memory} GiB of memory, Linux ${release()}, Node.js ${process.versions.node}`;
}
