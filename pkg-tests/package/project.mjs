// Small projects outside the tree, with nothing but the packed tarball in them.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

export const tarball = resolve(import.meta.dirname, "../node_modules/tidegate.tgz");
export const unpacked = resolve(import.meta.dirname, "../node_modules/tidegate");
const tsc = resolve(import.meta.dirname, "../../node_modules/typescript/bin/tsc");

/** A new directory with these files in it, removed when the test ends. */
export function directory(test, files) {
  const path = mkdtempSync(join(tmpdir(), "tidegate-"));
  test.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

/** The same, with the tarball installed as its user would install it. */
export function project(test, files) {
  const path = directory(test, { "package.json": '{ "name": "user", "private": true }', ...files });
  execute("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], path);
  return path;
}

/** Runs a command and answers its output; an error shows what it said. */
export function execute(command, args, cwd) {
  try {
    return execFileSync(command, args, {
      cwd,
      encoding: "utf8",
      maxBuffer: 2 ** 26,
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    throw new Error(`${command} ${args.join(" ")}\n${error.stdout}${error.stderr}`);
  }
}

export const node = (file, cwd) => execute(process.execPath, [file], cwd).trim();
export const typecheck = (cwd) => execute(process.execPath, [tsc, "-p", "."], cwd);
export const manifest = () => JSON.parse(readFileSync(join(unpacked, "package.json"), "utf8"));

/** Two of three are admitted; what a program has to print when the package works in it. */
export const works = "true true false";
export const use = `
const limiter = new Limiter({ limit: { limit: 2, window: "10s" } });
const answers = [];
const ask = async () => {
  for (let i = 0; i < 3; i += 1) answers.push((await limiter.consume("key")).allowed);
  console.log(answers.join(" "));
};
ask();
`;
