// The JavaScript snippets of a document, and programs made of them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Beside the packed tarball, so that snippets import what users install. */
const folder = join(import.meta.dirname, "../node_modules/.snippets");

export const documentOf = (file) => readFileSync(join(import.meta.dirname, "../..", file), "utf8");

/** The snippets of a document that are files, written side by side. */
export function filesOf(file) {
  mkdirSync(folder, { recursive: true });
  const files = [...documentOf(file).matchAll(/<!-- file: (\S+) -->\n```js\n(.*?)```/gs)];
  return files.map(([, name, code]) => {
    const path = join(folder, name);
    writeFileSync(path, code);
    return { name, path, code };
  });
}

/** The snippets of a file, by the names in their "<!-- test: name -->", else by number. */
export function snippetsOf(file) {
  const document = basename(file, ".md");
  return [...documentOf(file).matchAll(/(?:<!-- test: (\w+) -->\n)?```js\n(.*?)```/gs)].map(
    ([, name, code], at) => ({ name: name ?? `snippet ${at + 1}`, document, code }),
  );
}

/** Starts a snippet, or what a test made of it. */
export function start({ name, document, code, path }, replaced = code, env = {}) {
  mkdirSync(folder, { recursive: true });
  const file = path ?? join(folder, `${document}-${name.replace(" ", "-")}.mjs`);
  writeFileSync(file, replaced);
  const options = { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [file], options);
  const output = { out: "", error: "" };
  child.stdout.on("data", (text) => {
    output.out += text;
  });
  child.stderr.on("data", (text) => {
    output.error += text;
  });
  return { child, output };
}

/** Runs a snippet, which has to print what its "// prints:" lines say. */
export async function prints(snippet, env) {
  const expected = [...snippet.code.matchAll(/^\/\/ prints: (.*)$/gm)].map(([, line]) => line);
  assert.ok(expected.length > 0, "a snippet shows what it prints");
  const { child, output } = start(snippet, snippet.code, env);
  const [code] = await once(child, "close");
  assert.equal(code, 0, output.error);
  assert.deepEqual(output.out.trimEnd().split("\n"), expected);
}
