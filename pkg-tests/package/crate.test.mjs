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

test("the crate that is packed builds by itself", () => {
  // Elsewhere than where the crate itself may be compiling.
  const args = ["package", "--allow-dirty", "--offline", "--target-dir", "target/packed"];
  execute("cargo", args, root);
});

const licences = [
  "MIT",
  "Apache-2.0",
  "BSD-3-Clause",
  "BSL-1.0",
  "Unicode-3.0",
  "Unlicense",
  "Zlib",
];

/** One of each alternative that an SPDX expression leaves open. */
function isAllowed(expression) {
  return expression.split(" AND ").every((part) =>
    part
      .replace(/[()]/g, "")
      .split(/ OR | ?\/ ?/)
      .some((licence) => licences.includes(licence)),
  );
}

test("every crate is under a licence that asks for no more than to be named, and from one registry", () => {
  const metadata = execute("cargo", ["metadata", "--format-version=1", "--all-features"], root);
  const { packages } = JSON.parse(metadata);
  const others = packages.filter(({ name }) => name !== "tidegate");
  assert.ok(others.length > 50);
  assert.deepEqual(
    others.filter(({ license }) => !isAllowed(license ?? "none")).map(({ name }) => name),
    [],
  );
  assert.equal(new Set(others.map(({ source }) => source)).size, 1);
});
