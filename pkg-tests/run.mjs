// npm test: every check and every suite, two at a time, until one fails. Groups may be named:
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
const total = { passed: 0, failed: 0 };
const native = { lint, rust };
/** They need the Rust Worker. */
const workerSuites = ["worker", "cloudflare", "budgets"];
/** Many processes each: they come when no compiler runs beside them any more. */
const fleetSuites = ["demo", "fleet", "gateway-fleet", "redis-faults", "tiers"];

await main(import.meta, async () => {
  const suites = readdirSync(tests, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && testFiles(entry.name).length > 0)
    .map((entry) => entry.name);
  const packaged = { types, ...Object.fromEntries(suites.map((name) => [name, suite])) };
  const groups = { ...native, ...packaged };
  const names = Object.keys(groups);
  const wanted = process.argv.length > 2 ? process.argv.slice(2) : names;
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown) throw new Problem(`No group "${unknown}". There are: ${names.join(", ")}`);

  await reported(async () => {
    await check("set-up", setupTests);
    const installed = wanted.filter((name) => !(name in native));
    if (installed.length > 0) {
      await check("build", build);
      await check("pack", pack);
    }
    const [ofWorker, ofPackage] = parted(installed, (name) => workerSuites.includes(name));
    const [ofFleets, others] = parted(ofPackage, (name) => fleetSuites.includes(name));
    const compiled = once(() => compile(wanted, ofWorker.length > 0));
    await inLanes([
      compiled,
      ...others.map((name) => () => groups[name](name)),
      // Suites of many processes have deadlines that they miss beside a compiler.
      ...[...ofWorker, ...ofFleets].map((name) => () => compiled().then(() => suite(name))),
    ]);
  });
  console.log(`${total.passed} passed, ${total.failed} failed`);
});

// ── order ───────────────────────────────────────────────────────────────

/** What takes turns with the compiler. */
async function compile(wanted, worker) {
  for (const [name, group] of Object.entries(native)) if (wanted.includes(name)) await group();
  if (!worker) return;
  await check("set-up, Worker", schemathesis);
  await check("build, Worker", buildWorker);
}

/**
 * Two tasks at a time, in order: most of the time of a suite is waiting. What fails is reported at once, and none is
 * begun after it.
 */
async function inLanes(tasks) {
  const waiting = tasks.values();
  const lane = async () => {
    for (const task of waiting) {
      await reported(task);
      if (process.exitCode) return;
    }
  };
  await Promise.all([lane(), lane()]);
}

function once(body) {
  let result;
  return () => (result ??= body());
}

function parted(names, holds) {
  return [names.filter(holds), names.filter((name) => !holds(name))];
}

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
  for (const feature of ["npm", "npm-stores"]) {
    const target = ["--lib", "--features", feature, "--target", "wasm32-unknown-unknown"];
    await check(`clippy, ${feature}`, () => clippy(wasmEnvironment(), ...target));
  }
  await check("clippy, worker", () => clippy({}, "--all-targets", "--features", "worker"));
  await check("rustdoc", () =>
    run("cargo", ["doc", "--no-deps"], { env: { RUSTDOCFLAGS: "-D warnings" } }),
  );
}

async function rust() {
  const result = [/^test result: .* (\d+) passed/gm, /^test result: .* (\d+) failed/gm];
  // The core's tests and the Worker's are one program each: nothing of the core depends on the feature.
  await counted("cargo test", "cargo", ["test", "--features", "worker"], result);
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
