import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { execute, manifest, tarball, unpacked } from "./project.mjs";

const source = resolve(import.meta.dirname, "../../js/src");
const files = execute("tar", ["-tzf", tarball], unpacked)
  .trim()
  .split("\n")
  .map((name) => name.replace(/^package\//, ""));

test("the tarball holds what the build writes, and nothing else", () => {
  const besides = ["package.json", "README.md", "LICENSE", "dist/sbom.cdx.json"];
  const fromWasm = ["core.wasm", "stores.wasm", "glue.js", "glue.d.ts"].map(
    (name) => `dist/wasm/gen/${name}`,
  );
  const fromSource = (name) => {
    const stem = /^dist\/(.+?)(\.d\.ts|\.js)$/.exec(name)?.[1];
    return stem !== undefined && existsSync(join(source, `${stem}.ts`));
  };
  const isBundled = (name) => /^dist\/node\/(core|shared-\w+)\.js$/.test(name);
  const isEntry = (name) => /^dist\/node\//.test(name) && fromSource(name.replace("/node", ""));
  const kinds = [fromSource, isBundled, isEntry];
  const expected = (name) =>
    [...besides, ...fromWasm].includes(name) || kinds.some((isOfIt) => isOfIt(name));
  assert.deepEqual(
    files.filter((name) => !expected(name)),
    [],
  );
  for (const name of [...besides, ...fromWasm]) assert.ok(files.includes(name), name);
});

test("every export and every internal import names a file of the tarball", () => {
  const { exports, imports } = manifest();
  const targets = (entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry).flatMap(targets);
  for (const target of targets({ ...exports, ...imports })) {
    assert.ok(files.includes(target.replace("./", "")), target);
  }
});

test("there are no dependencies at run time", () => {
  assert.equal(manifest().dependencies, undefined);
});

test("the WebAssembly does not name the directory that it was built in", () => {
  for (const name of ["core", "stores"]) {
    const wasm = readFileSync(join(unpacked, `dist/wasm/gen/${name}.wasm`), "latin1");
    assert.equal(wasm.indexOf(resolve(source, "../..")), -1);
  }
});
