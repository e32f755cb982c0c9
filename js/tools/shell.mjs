// What the other tools share: running commands, naming steps, and errors that a person can act on.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node.js 20.19 or newer is needed; this is ${process.version}. See nodejs.org.`);
  process.exit(1);
}

export const root = resolve(import.meta.dirname, "../..");
export const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidegate");
export const cargoHome = process.env.CARGO_HOME || join(homedir(), ".cargo");
export const targetDir = resolve(root, process.env.CARGO_TARGET_DIR || "target");

/** Something that the person at the keyboard can mend. It is shown as it stands, without a stack trace. */
export class Problem extends Error {}

/** Runs the body when its file is the program that was started, and not only imported. */
export async function main(meta, body) {
  if (!process.argv[1] || realpathSync(process.argv[1]) !== meta.filename) return;
  await reported(body);
}

/** Runs the body; its error becomes a message and the exit code. */
export async function reported(body) {
  try {
    await body();
  } catch (error) {
    console.error(error instanceof Problem ? `\n${error.message}` : error);
    process.exitCode = 1;
  }
}

/** The trimmed output of a command, or undefined when it failed or does not exist. */
export function capture(command, args, env) {
  const { status, stdout } = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** Runs a command and resolves to its exit code and output, whatever they are. */
export function attempt(command, args, { cwd = root, env, timeout } = {}) {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout,
    });
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));
    const settle = (code, note = "") =>
      done({ code, output: Buffer.concat(chunks).toString() + note });
    child.on("error", (error) => settle(1, `${command}: ${error.code}\n`));
    child.on("close", (code) => settle(code ?? 1));
    // What a killed command leaves behind may hold its output open for ever, so "close" is not waited for then.
    child.on("exit", () => {
      if (child.killed) setTimeout(settle, 500, 1, `took longer than ${timeout / 1000} s\n`);
    });
  });
}

/** Runs a command that has to succeed, and resolves to its output. */
export async function run(command, args, options) {
  const { code, output } = await attempt(command, args, options);
  if (code !== 0) throw new Problem(`${output.trimEnd()}\n\nfailed: ${command} ${args.join(" ")}`);
  return output;
}

/** Runs the npm that runs us, if one does. */
export function npm(args) {
  const path = process.env.npm_execpath;
  return path?.endsWith(".js") ? run(process.execPath, [path, ...args]) : run("npm", args);
}

/** Says what is being done and how long that usually takes, does it, and says how long it took. */
export async function step(title, usually, body) {
  console.log(`• ${title} (usually ${usually})`);
  const start = performance.now();
  const result = await body();
  console.log(`  done in ${seconds(start)}`);
  return result;
}

export function seconds(start) {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

/** All files below the given paths, as absolute paths in a fixed order. */
export function filesBelow(paths, skip = () => false) {
  return paths.flatMap((path) => {
    const full = resolve(root, path);
    if (skip(full)) return [];
    if (!statSync(full).isDirectory()) return [full];
    return filesBelow(
      readdirSync(full)
        .sort()
        .map((name) => join(full, name)),
      skip,
    );
  });
}

/** One hash over the names and the content of files, and over some text. */
export function fingerprint(files, ...text) {
  const hash = createHash("sha256");
  for (const file of files) {
    const content = readFileSync(file);
    hash.update(`${file.slice(root.length)}\0${content.length}\0`).update(content);
  }
  return hash.update(text.join("\0")).digest("hex");
}

/** The content of a file, or undefined when there is none. */
export function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
