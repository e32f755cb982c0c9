// The README's figures are those that the bench wrote down.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../js/tools/shell.mjs";

const linesOf = (file) => readFileSync(join(root, file), "utf8").split("\n");

test("every line of the README's table of figures stands in the bench's", () => {
  const readme = linesOf("README.md");
  const from = readme.indexOf("## What it costs");
  const to = readme.findIndex((line, at) => at > from && line.startsWith("## "));
  const quoted = readme.slice(from, to).filter((line) => line.startsWith("|"));
  const measured = linesOf("pkg-tests/bench/table.md");
  assert.ok(quoted.length > 10, "the README quotes the table");
  let last = 0;
  for (const line of quoted) {
    last = measured.indexOf(line, last);
    assert.notEqual(last, -1, line);
  }
  assert.ok(readme.slice(from, to).join(" ").includes(measured[0]), "the machine is described");
});
