// Rules of the architecture that no compiler checks.

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { capture, filesBelow, root } from "../js/tools/shell.mjs";

const bindings = ["src/host", "src/npm", "src/worker"];
const pure = ["time", "digest", "limit", "dedup", "burst", "op", "guard"].map(
  (name) => `src/${name}`,
);

const sourceRules = [
  {
    says: "JavaScript's types belong to the bindings",
    word: /\b(wasm_bindgen|js_sys|JsValue|worker::)/,
    holdsFor: (path) => !startsWith(path, bindings),
  },
  {
    says: "a pure step does not wait",
    word: /\basync\b|\.await\b/,
    holdsFor: (path) => startsWith(path, pure),
  },
  {
    says: "the crate reads no clock",
    word: /\b(SystemTime|Instant::now|Date)\b/,
    holdsFor: (path) => !startsWith(path, ["src/worker"]),
  },
];

const startsWith = (path, prefixes) => prefixes.some((prefix) => path.startsWith(prefix));

/** What breaks the rules for the source of the crate, one line each. */
export function brokenSourceRules() {
  return filesBelow(["src"])
    .filter((file) => file.endsWith(".rs"))
    .flatMap((file) => {
      const path = relative(root, file);
      const rules = sourceRules.filter((rule) => rule.holdsFor(path));
      return readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line, index) => {
          const code = line.replace(/\/\/.*/, "");
          return rules
            .filter((rule) => rule.word.test(code))
            .map((rule) => `${path}:${index + 1}: ${rule.says}: ${line.trim()}`);
        });
    });
}

const dependencyRules = [
  { features: "", without: ["wasm-bindgen", "js-sys", "worker", "tokio"] },
  { features: "npm", without: ["wasm-bindgen", "js-sys", "worker", "tokio"] },
  { features: "npm-stores", without: ["worker", "tokio"] },
];

/** What is in a dependency tree and must not be, one line each. */
export function brokenDependencyRules() {
  return dependencyRules.flatMap(({ features, without }) => {
    const tree = (...target) =>
      capture("cargo", [
        ...["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"],
        ...["--features", features, ...target],
      ]);
    const trees = [tree(), tree("--target", "wasm32-unknown-unknown")];
    if (trees.includes(undefined)) return ["cargo tree failed"];
    const names = new Set(trees.flatMap((lines) => lines.split("\n")).map(nameOf));
    return without
      .filter((name) => names.has(name))
      .map((name) => `${name} is a dependency with the features "${features}"`);
  });
}

const nameOf = (line) => line.split(" ")[0];
