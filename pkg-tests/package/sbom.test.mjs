import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { manifest, unpacked } from "./project.mjs";

const text = readFileSync(join(unpacked, "dist/sbom.cdx.json"), "utf8");
const bill = JSON.parse(text);

test("the bill of materials is valid CycloneDX", async () => {
  const { version } = Spec.Spec1dot6;
  assert.equal(await new Validation.JsonStrictValidator(version).validate(text), null);
});

test("it names the crates that the WebAssembly itself names, and the package's own version", () => {
  assert.equal(bill.metadata.component.purl, `pkg:npm/tidegate@${manifest().version}`);
  const names = bill.components.map(({ name }) => name);
  for (const crate of ["dlmalloc", "hmac", "js-sys", "sha2", "wasm-bindgen"])
    assert.ok(names.includes(crate));
  // Panic messages tell the source files that they come from.
  const read = (name) => readFileSync(join(unpacked, `dist/wasm/gen/${name}.wasm`), "latin1");
  const wasm = read("core") + read("stores");
  const told = [...wasm.matchAll(/registry\/src\/[^/]+\/([\w-]+?)-(\d[\w.+-]*)\//g)];
  for (const [, name, version] of told) {
    assert.ok(
      bill.components.some((one) => one.name === name && one.version === version),
      `${name} ${version}`,
    );
  }
  assert.ok(!names.includes("proptest"), "what only tests need is not in it");
});
