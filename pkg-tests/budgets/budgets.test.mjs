// What may not grow unnoticed, on a machine of any speed: instructions of the steps, counted by valgrind, and what
// users download. A budget that is passed on purpose is raised here, and the reason said where it is committed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { root, run } from "../../js/tools/shell.mjs";

/** Instructions of one step, as compiled for x86-64. */
const instructions = {
  "row-admitted": 130,
  "row-denied": 130,
  "row-first": 400,
  "keyed-known": 420,
  "text-bucket": 5_200,
  "text-fixed": 5_200,
  "text-sliding": 5_600,
  "text-observe": 6_300,
};

/** Bytes with gzip. */
const bytes = {
  "js/dist/wasm/gen/core.wasm": 37_000,
  "js/dist/wasm/gen/stores.wasm": 59_400,
  "target/worker/index_bg.wasm": 115_000,
};

const TIMES = 2_000;

const manifest = join(root, "pkg-tests/bench/native/Cargo.toml");
const target = join(root, "target/native-bench");

async function counted(name, times) {
  const program = join(target, "release/steps");
  const valgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null", program];
  const output = await run("valgrind", [...valgrind, name, String(times)]);
  return Number(/Collected : (\d+)/.exec(output)[1]);
}

const isX86 = process.arch === "x64";

describe("instructions of a step", { skip: !isX86 && "budgets are of x86-64" }, () => {
  before(() =>
    run("cargo", ["build", "--release", "--manifest-path", manifest, "--target-dir", target]),
  );

  for (const [name, budget] of Object.entries(instructions)) {
    test(name, async () => {
      const [some, more] = [await counted(name, TIMES), await counted(name, 2 * TIMES)];
      const each = Math.round((more - some) / TIMES);
      assert.ok(each <= budget, `${each} instructions; ${budget} may be`);
      assert.ok(each > budget / 2, `${each} instructions: the budget of ${budget} is too large`);
    });
  }
});

describe("bytes, with gzip", () => {
  for (const [file, budget] of Object.entries(bytes)) {
    test(file, () => {
      const size = gzipSync(readFileSync(join(root, file)), { level: 9 }).length;
      assert.ok(size <= budget, `${size} bytes; ${budget} may be`);
    });
  }
});
