// npm run bench: builds, measures each row in a process of its own, and prints one table. Part of a row's
// name chooses rows: "npm run bench -- denied". With "pauses" the pauses alone are measured.

import { join } from "node:path";
import { build } from "../../js/tools/build.mjs";
import { setup } from "../../js/tools/setup.mjs";
import { main, root, run } from "../../js/tools/shell.mjs";
import { keepers } from "./contestants.mjs";
import { rows } from "./rows.mjs";

const here = (name) => join(root, "pkg-tests/bench", name);

const measured = (script, name) =>
  run(process.execPath, ["--expose-gc", here(script), ...(name ? [name] : [])]).then(JSON.parse);

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

await main(import.meta, async () => {
  const part = process.argv[2] ?? "";
  await setup();
  await build();
  if (part !== "pauses") await table((name) => name.includes(part));
  if (part === "" || "tiers".includes(part)) await operations();
  if (part === "") await bytes();
  if (part === "" || part === "pauses") await pauses();
});
