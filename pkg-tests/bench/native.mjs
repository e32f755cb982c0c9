// The core as Rust hosts have it, as JSON: with "steps" the single steps, as criterion estimates them, else decisions by
// key beside governor and throttlecrab.

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

/** What criterion keeps: the middle of each step's samples, in nanoseconds. */
async function steps() {
  rmSync(estimates, { recursive: true, force: true });
  await bench("steps");
  const kept = filesBelow([estimates]).filter((file) => file.endsWith("new/benchmark.json"));
  const step = (file) => ({
    who: JSON.parse(readFileSync(file, "utf8")).function_id,
    value: JSON.parse(readFileSync(join(file, "../estimates.json"), "utf8")).median.point_estimate,
  });
  return [{ what: "native, a step", figures: kept.map(step).sort((a, b) => a.value - b.value) }];
}

const counted = (count, name) => `${count.toLocaleString("en").replaceAll(",", " ")} ${name}`;

async function keyed() {
  const output = await bench("keyed");
  const told = JSON.parse(/^\[\{.*$/m.exec(output)[0]);
  return told.map(({ keys, threads, rows }) => ({
    what: `native, ${counted(keys, "keys")}${threads === 1 ? "" : `, ${threads} threads`}`,
    figures: rows.map(({ name, ns, ratio }) => ({ who: name, value: ns, ratio })),
  }));
}

await main(import.meta, async () => {
  console.log(JSON.stringify(await (process.argv[2] === "steps" ? steps : keyed)()));
});
