// npm run bench -- native: the core as Rust hosts have it. Prints the single steps, as criterion estimates them, and
// decisions by key beside governor and throttlecrab.

import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, main, root, run } from "../../js/tools/shell.mjs";

const manifest = join(root, "pkg-tests/bench/native/Cargo.toml");
const target = join(root, "target/native-bench");
const estimates = join(target, "criterion/steps");

const bench = (name) =>
  run("cargo", ["bench", "--manifest-path", manifest, "--bench", name], {
    env: { CARGO_TARGET_DIR: target },
  });

const line = (cells) => console.log(`| ${cells.join(" | ")} |`);

/** What criterion keeps: the middle of each step's samples, in nanoseconds. */
async function steps() {
  rmSync(estimates, { recursive: true, force: true });
  await bench("steps");
  const kept = filesBelow([estimates]).filter((file) => file.endsWith("new/benchmark.json"));
  const step = (file) => ({
    name: JSON.parse(readFileSync(file, "utf8")).function_id,
    ns: JSON.parse(readFileSync(join(file, "../estimates.json"), "utf8")).median.point_estimate,
  });
  line(["step", "ns"]);
  line(["---", "---:"]);
  const sorted = kept.map(step).sort((a, b) => a.ns - b.ns);
  for (const { name, ns } of sorted) line([name, ns.toFixed(1)]);
}

async function keyed() {
  const output = await bench("keyed");
  line(["keys", "threads", "who, on which clock", "ns per decision", "× tidegate"]);
  line(["---:", "---:", "---", "---:", "---:"]);
  for (const { keys, threads, rows } of JSON.parse(/^\[\{.*$/m.exec(output)[0])) {
    for (const { name, ns, ratio } of rows) {
      line([keys, threads, name, ns.toFixed(0), ratio.toFixed(2)]);
    }
  }
}

await main(import.meta, async () => {
  await steps();
  console.log();
  await keyed();
});
