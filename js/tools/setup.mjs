// Brings what a build needs (and, with "test", what the tests need). What is there already is left alone;
// tools are kept outside the tree, so that every checkout finds them.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import {
  attempt,
  cache,
  capture,
  fingerprint,
  main,
  npm,
  Problem,
  readIfThere,
  root,
  run,
  step,
} from "./shell.mjs";

const wasmTarget = "wasm32-unknown-unknown";

/** Everything that a build needs. */
export async function setup() {
  await npmPackages();
  rustIsThere();
  await wasmToolchain();
  await wasmBindgen();
}

/** What the tests need on top. */
export async function setupTests() {
  await setup();
  await rustComponents();
  await chromium();
}

// ── npm ─────────────────────────────────────────────────────────────────

async function npmPackages() {
  const stamp = join(root, "node_modules/.tidegate-setup");
  const wanted = fingerprint([
    join(root, "package-lock.json"),
    join(root, "package.json"),
    join(root, "js/package.json"),
  ]);
  if (readIfThere(stamp) === wanted) return;
  await step("npm packages, exactly those of the lock file", "20 s", async () => {
    await npm(["ci"]);
    writeFileSync(stamp, wanted);
  });
}

// ── Rust ────────────────────────────────────────────────────────────────

function rustIsThere() {
  const wanted = /^rust-version = "(.+)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
  const advice =
    "Install it with rustup (see rustup.rs), or on Debian and its derivatives with:\n" +
    "  apt-get update && apt-get install cargo-web rustc-web rust-web-src";
  if (!capture("cargo", ["--version"])) throw new Problem(`Rust is missing.\n${advice}`);
  const found = /^rustc (\d+\.\d+)/.exec(capture("rustc", ["--version"]) ?? "")?.[1];
  const number = (version) =>
    version.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
  if (!found || number(found) < number(wanted)) {
    throw new Problem(
      `Rust ${wanted} or newer is needed; rustc is ${found ?? "missing"}.\n${advice}`,
    );
  }
}

/** The environment in which cargo builds WebAssembly, or undefined when none can yet. */
export function wasmEnvironment() {
  for (const env of [{}, { RUSTUP_TOOLCHAIN: "wasm" }]) {
    const lib = capture("rustc", ["--print", "target-libdir", "--target", wasmTarget], env);
    if (lib && existsSync(lib) && readdirSync(lib).some((name) => /^libstd-.*\.rlib$/.test(name)))
      return env;
  }
}

async function wasmToolchain() {
  if (wasmEnvironment()) return;
  const rustup = capture("rustup", ["--version"]) !== undefined;
  if (rustup) {
    // A closed network may refuse the connection or swallow it, so patience has an end.
    const { code } = await step("Rust's library for WebAssembly, from rustup", "10 s", () =>
      attempt("rustup", ["target", "add", wasmTarget], { timeout: 180_000 }),
    );
    if (code === 0 && wasmEnvironment()) return;
    console.log("  rustup cannot reach its server; Debian's packages do instead");
  }
  await debianToolchain(rustup);
  if (!wasmEnvironment()) {
    throw new Problem(`Rust's library for ${wasmTarget} was built, but rustc does not find it.`);
  }
}

/**
 * Debian packages a compiler and the source of its library, but not the library for WebAssembly: that is built
 * here, once. LTO needs its bitcode, which cargo would leave out.
 */
async function debianToolchain(rustup) {
  await aptInstall(
    ["rustc-web", "rust-web-src"],
    "Debian's Rust compiler and the source of its library",
    "60 s",
  );
  const rustc = (capture("dpkg", ["-L", "rustc-web"]) ?? "")
    .split("\n")
    .find((path) => path.endsWith("/bin/rustc"));
  const sysroot = rustc && capture(rustc, ["--print", "sysroot"]);
  const host = rustc && /^host: (.+)$/m.exec(capture(rustc, ["-vV"]) ?? "")?.[1];
  if (!sysroot || !host) throw new Problem("The package rustc-web holds no usable rustc.");

  const lldPlace = join(sysroot, "lib/rustlib", host, "bin");
  if (!existsSync(join(lldPlace, "rust-lld"))) {
    const lld = rustup
      ? join(capture("rustc", ["--print", "sysroot"]), "lib/rustlib", host, "bin/rust-lld")
      : await debianLld();
    await asRoot("mkdir", ["-p", lldPlace]);
    await asRoot("ln", ["-sfn", lld, join(lldPlace, "rust-lld")]);
  }

  const library = join(sysroot, "lib/rustlib", wasmTarget, "lib");
  if (!existsSync(library)) {
    await step("Rust's library for WebAssembly, from source", "60 s", () =>
      buildLibrary(rustc, library),
    );
  }
  if (rustup) await run("rustup", ["toolchain", "link", "wasm", sysroot]);
}

async function buildLibrary(rustc, library) {
  const crate = mkdtempSync(join(tmpdir(), "tidegate-std-"));
  try {
    mkdirSync(join(crate, "src"));
    writeFileSync(join(crate, "src/lib.rs"), "");
    writeFileSync(join(crate, "Cargo.toml"), '[package]\nname = "empty"\nedition = "2021"\n');
    await run(
      "cargo",
      ["build", "--release", "-Zbuild-std=std,panic_abort", "--target", wasmTarget],
      {
        cwd: crate,
        env: {
          RUSTC: rustc,
          RUSTC_BOOTSTRAP: "1",
          RUSTFLAGS: "-C embed-bitcode=yes",
          CARGO_TARGET_DIR: join(crate, "target"),
        },
      },
    );
    const deps = join(crate, "target", wasmTarget, "release/deps");
    const rlibs = readdirSync(deps).filter(
      (name) => name.endsWith(".rlib") && !name.startsWith("libempty-"),
    );
    // Moved into place in one piece: a library that is there is whole.
    const partial = `${library}.partial`;
    await asRoot("rm", ["-rf", partial]);
    await asRoot("mkdir", ["-p", partial]);
    await asRoot("cp", [...rlibs.map((name) => join(deps, name)), partial]);
    await asRoot("mv", [partial, library]);
  } finally {
    rmSync(crate, { recursive: true, force: true });
  }
}

async function debianLld() {
  await aptInstall(["lld"], "a linker for WebAssembly", "20 s");
  return capture("readlink", ["-f", "/usr/bin/lld"]);
}

/** The formatter and the linter, which small installations of Rust leave out. */
async function rustComponents() {
  if (capture("cargo", ["fmt", "--version"]) && capture("cargo", ["clippy", "--version"])) return;
  if (capture("rustup", ["--version"])) {
    await step("rustfmt and clippy", "10 s", () =>
      run("rustup", ["component", "add", "rustfmt", "clippy"]),
    );
  } else {
    await aptInstall(["rustfmt-web", "rust-web-clippy"], "rustfmt and clippy", "20 s");
  }
}

// ── wasm-bindgen ────────────────────────────────────────────────────────

/** The version that Cargo.lock holds: the command and the crate speak a format of their own to each other. */
function wasmBindgenVersion() {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  return /name = "wasm-bindgen"\nversion = "(.+)"/.exec(lock)[1];
}

const wasmBindgenHome = () => join(cache, `wasm-bindgen-${wasmBindgenVersion()}`);
export const wasmBindgenCommand = () => join(wasmBindgenHome(), "bin/wasm-bindgen");

async function wasmBindgen() {
  if (capture(wasmBindgenCommand(), ["--version"])) return;
  const version = wasmBindgenVersion();
  await step(`wasm-bindgen ${version}, kept in ${cache}`, "2 min", () =>
    run(
      "cargo",
      ["install", "wasm-bindgen-cli", "--version", version, "--root", wasmBindgenHome()],
      {
        // Outside the tree: what stands in its target directory and settings is for the crate.
        cwd: homedir(),
        env: { CARGO_TARGET_DIR: "" },
      },
    ),
  );
}

// ── Debian packages and the browser ─────────────────────────────────────

export const findChromium = () =>
  ["chromium", "chromium-browser", "google-chrome"]
    .map((name) => capture("which", [name]))
    .find((path) => path !== undefined);

async function chromium() {
  if (!findChromium())
    await aptInstall(["chromium"], "Chromium, for the tests of the demo page", "60 s");
}

async function aptInstall(packages, what, usually) {
  const missing = packages.filter((name) => !capture("dpkg", ["-L", name]));
  if (missing.length === 0) return;
  const command = `apt-get update && apt-get install ${missing.join(" ")}`;
  if (!capture("apt-get", ["--version"])) {
    throw new Problem(`Missing: ${what}. On Debian and its derivatives: ${command}`);
  }
  await step(`${what} (${missing.join(", ")})`, usually, async () => {
    try {
      await asRoot("apt-get", ["update"]);
      await asRoot("apt-get", ["install", "-y", "--no-install-recommends", ...missing]);
    } catch (error) {
      throw new Problem(`${error.message}\n\nMissing: ${what}. As root: ${command}`);
    }
  });
}

/** Runs a command as root; where that needs a password, the person has to do it. */
async function asRoot(command, args) {
  if (process.getuid?.() === 0) return run(command, args);
  return run("sudo", ["-n", command, ...args]);
}

if (process.argv[1] === import.meta.filename) {
  await main(process.argv[2] === "test" ? setupTests : setup);
}
