import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { execute } from "./project.mjs";

const root = resolve(import.meta.dirname, "../..");

test("the crate holds its source and what describes it, and nothing else", () => {
  const args = ["package", "--list", "--allow-dirty", "--offline"];
  const files = execute("cargo", args, root).trim().split("\n");
  const besides = [
    ...["Cargo.toml", "Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"],
    ...["README.md", "LICENSE", "CHANGELOG.md", "build.rs", "src/worker/openapi.json"],
  ];
  assert.deepEqual(
    files.filter((file) => !besides.includes(file) && !/^src\/[\w/-]+\.(rs|lua)$/.test(file)),
    [],
  );
  for (const file of ["src/lib.rs", "LICENSE", "README.md"]) assert.ok(files.includes(file), file);
});
