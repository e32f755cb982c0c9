// What is in the package: the crates that its WebAssembly is made of, as CycloneDX has it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { capture, Problem, root } from "./shell.mjs";

/** The bill of materials. It tells no time, so that the same source gives the same bytes. */
export function sbom() {
  const { name, version, description, license } = JSON.parse(
    readFileSync(join(root, "js/package.json"), "utf8"),
  );
  const main = { name, version, description, licenses: [{ license: { id: license } }] };
  const purl = `pkg:npm/${name}@${version}`;
  const components = crates().map(componentOf);
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "library", "bom-ref": purl, purl, ...main } },
    components,
    dependencies: [{ ref: purl, dependsOn: components.map(({ purl }) => purl) }],
  };
}

/** Every crate in the module, with its licence and the checksum by which Cargo knows it. */
function crates() {
  const printed = capture("cargo", [
    ...["tree", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"],
    ...[
      "--features",
      "npm,npm-stores",
      "--target",
      "wasm32-unknown-unknown",
      "--format",
      "{p}|{l}",
    ],
  ]);
  if (printed === undefined)
    throw new Problem("cargo tree does not tell what the module is made of.");
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  const lines = [...new Set(printed.split("\n"))].sort();
  return lines
    .map((line) => /^(\S+) v(\S+?)(?: \(.*\))?\|(.+)$/.exec(line))
    .map(([, name, version, licence]) => ({
      name,
      version,
      licence,
      sum: sumIn(lock, name, version),
    }))
    .filter(({ sum }) => sum !== undefined);
}

/** Undefined for our own crate, which comes from no registry. */
function sumIn(lock, name, version) {
  const entry = lock.split("[[package]]").find((text) => {
    return text.includes(`\nname = "${name}"\nversion = "${version}"\n`);
  });
  return /^checksum = "(\w+)"$/m.exec(entry)?.[1];
}

function componentOf({ name, version, licence, sum }) {
  const purl = `pkg:cargo/${name}@${version}`;
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    licenses: [{ expression: licence }],
    hashes: [{ alg: "SHA-256", content: sum }],
  };
}
