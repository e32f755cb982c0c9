// npm test: every check and every suite, cheapest first, until one fails. Groups may be named:
// "npm test -- package gateway". Ends with one line: how many passed and how many failed.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "../js/tools/build.mjs";
import { buildWorker } from "../js/tools/build-worker.mjs";
import { schemathesis, setupTests, wasmEnvironment } from "../js/tools/setup.mjs";
import { attempt, main, Problem, reported, root, run, seconds } from "../js/tools/shell.mjs";
import { pack } from "./pack.mjs";
import { brokenDependencyRules, brokenSourceRules } from "./rules.mjs";

const tests = join(root, "pkg-tests");
const modules = join(root, "node_modules");
/** The suites that run the Rust Worker. */
const ofWorker = ["worker", "cloudflare"];
const total = { passed: 0, failed: 0 };

await main(import.meta, async () => {
  const suites = readdirSync(tests, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && testFiles(entry.name).length > 0)
    .map((entry) => entry.name);
  const native = { lint, rust };
  const packaged = { types, ...Object.fromEntries(suites.map((name) => [name, suite])) };
  const names = [...Object.keys(native), ...Object.keys(packaged)];
  const wanted = process.argv.length > 2 ? process.argv.slice(2) : names;
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown) throw new Problem(`No group "${unknown}". There are: ${names.join(", ")}`);

  const those = (groups) => Object.entries(groups).filter(([name]) => wanted.includes(name));
  await reported(async () => {
    await check("set-up", setupTests);
    for (const [name, group] of those(native)) await group(name);
    if (those(packaged).length > 0) {
      await check("build", build);
      await check("pack", pack);
    }
    if (wanted.includes("worker")) await check("set-up, Worker", schemathesis);
    if (wanted.some((name) => ofWorker.includes(name))) await check("build, Worker", buildWorker);
    for (const [name, group] of those(packaged)) await group(name);
  });
  console.log(`${total.passed} passed, ${total.failed} failed`);
});

// ── steps ───────────────────────────────────────────────────────────────

/** One step that either holds or throws what is wrong. */
async function check(name, body) {
  const start = performance.now();
  try {
    await body();
    total.passed += 1;
    console.log(`✓ ${name} (${seconds(start)})`);
  } catch (error) {
    total.failed += 1;
    console.log(`✗ ${name} (${seconds(start)})`);
    throw error;
  }
}

/** One command that runs tests, and counts them. */
async function counted(name, command, args, patterns, timeout) {
  const start = performance.now();
  const { code, output } = await attempt(command, args, { timeout });
  const [passed, failed] = patterns.map((pattern) =>
    [...output.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0),
  );
  const ok = code === 0 && failed === 0 && passed > 0;
  total.passed += passed;
  total.failed += ok ? 0 : Math.max(failed, 1);
  console.log(`${ok ? "✓" : "✗"} ${name}: ${passed} passed, ${failed} failed (${seconds(start)})`);
  if (!ok) throw new Problem(output);
}

function holds(broken) {
  if (broken.length > 0) throw new Problem(broken.join("\n"));
}

// ── groups ──────────────────────────────────────────────────────────────

async function lint() {
  const clippy = (env, ...args) =>
    run("cargo", ["clippy", ...args, "--", "-D", "warnings"], { env });
  await check("rustfmt", () => run("cargo", ["fmt", "--check"]));
  await check("source rules", () => holds(brokenSourceRules()));
  await check("dependency rules", () => holds(brokenDependencyRules()));
  await check("biome", () =>
    run(join(modules, ".bin/biome"), ["check", "--error-on-warnings", root]),
  );
  await check("clippy", () => clippy({}, "--all-targets"));
  await check("clippy, npm", () => clippy({}, "--all-targets", "--features", "npm"));
  await check("clippy, npm, wasm", () =>
    clippy(wasmEnvironment(), "--lib", "--features", "npm", "--target", "wasm32-unknown-unknown"),
  );
  await check("clippy, worker", () => clippy({}, "--all-targets", "--features", "worker"));
  await check("clippy, worker, wasm", () =>
    clippy(
      wasmEnvironment(),
      "--lib",
      "--features",
      "worker",
      "--target",
      "wasm32-unknown-unknown",
    ),
  );
  await check("rustdoc", () =>
    run("cargo", ["doc", "--no-deps"], { env: { RUSTDOCFLAGS: "-D warnings" } }),
  );
}

async function rust() {
  const result = [/^test result: .* (\d+) passed/gm, /^test result: .* (\d+) failed/gm];
  await counted("cargo test", "cargo", ["test"], result);
  const worker = ["test", "--lib", "--features", "worker", "worker::"];
  await counted("cargo test, worker", "cargo", worker, result);
}

async function types() {
  await check("types", () =>
    run(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", join(tests, "types")]),
  );
}

function testFiles(name) {
  return readdirSync(join(tests, name))
    .filter((file) => file.endsWith(".test.mjs"))
    .map((file) => join(tests, name, file));
}

async function suite(name) {
  const result = [/^ℹ pass (\d+)/gm, /^ℹ (?:fail|cancelled) (\d+)/gm];
  // Node counts a whole file as a test of its own, which this time is for.
  const args = ["--test", "--test-reporter=spec", "--test-timeout=120000", ...testFiles(name)];
  await counted(name, process.execPath, args, result, 180_000);
}
