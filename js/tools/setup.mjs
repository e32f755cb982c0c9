// Brings what a build needs (and, with "test", what the tests need). What is there already is left alone;
// tools are kept outside the tree, so that every checkout finds them.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import {
  attempt,
  cache,
  capture,
  cargoHome,
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
  await postgresql();
  await redisAndValkey();
  await sqlite();
  await prometheus();
  await valgrind();
  await runtimes();
}

// ── npm ─────────────────────────────────────────────────────────────────

async function npmPackages() {
  const stamp = join(root, "node_modules/.tidegate-setup");
  const wanted = fingerprint([join(root, "package-lock.json")]);
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
  return [{}, { RUSTUP_TOOLCHAIN: "wasm" }].find((env) => isComplete("rustc", env));
}

/** Where a compiler looks for what it needs to build WebAssembly. */
function places(rustc, env) {
  const asked = ["target-libdir", "sysroot", "host-tuple"].flatMap((what) => ["--print", what]);
  const printed = capture(rustc, [...asked, "--target", wasmTarget], env);
  if (printed === undefined) return undefined;
  const [library, sysroot, host] = printed.split("\n");
  return { library, linker: linkerOf(sysroot, host), host };
}

const linkerOf = (sysroot, host) => join(sysroot, "lib/rustlib", host, "bin/rust-lld");
const version = (rustc, env) => capture(rustc, ["--version"], env);

function isComplete(rustc, env) {
  const place = places(rustc, env);
  if (!place || !existsSync(place.library)) return false;
  if (!readdirSync(place.library).some((name) => /^libstd-.*\.rlib$/.test(name))) return false;
  // What was built here is of no use any more when the compiler was upgraded, or the linker removed.
  const madeBy = readIfThere(join(place.library, "made-by"));
  return madeBy === undefined || (madeBy === version(rustc, env) && existsSync(place.linker));
}

async function wasmToolchain() {
  if (wasmEnvironment()) return;
  const rustup = capture("rustup", ["--version"]) !== undefined;
  if (rustup) {
    // A closed network may refuse the connection or swallow it, so patience has an end.
    const { code } = await step("Rust's library for WebAssembly, from rustup", "10 s", () =>
      attempt("rustup", ["target", "add", wasmTarget], { timeout: 120_000 }),
    );
    if (code === 0 && wasmEnvironment()) return;
    console.log("  rustup does not reach its server; Debian's packages do instead");
  }
  await debianToolchain(rustup);
  if (!wasmEnvironment()) throw new Problem(`rustc does not find its library for ${wasmTarget}.`);
}

/** Debian packages a compiler and the source of its library, but not the library for WebAssembly. */
async function debianToolchain(rustup) {
  await aptInstall(["rustc-web", "rust-web-src"], "Debian's Rust compiler and its source", "60 s");
  const rustc = capture("dpkg", ["-L", "rustc-web"])
    ?.split("\n")
    .find((path) => path.endsWith("/bin/rustc"));
  const place = rustc && places(rustc);
  if (!place) throw new Problem("The package rustc-web holds no usable rustc.");

  if (!isComplete(rustc)) {
    const built = await debianLibrary(rustc);
    const linker = rustup
      ? linkerOf(capture("rustc", ["--print", "sysroot"]), place.host)
      : await debianLinker();
    // The library is moved into place in one piece: one that is there is whole.
    const partial = `${place.library}.partial`;
    await asRoot(
      `mkdir -p '${dirname(place.linker)}' '${dirname(partial)}'`,
      `ln -sfn '${linker}' '${place.linker}'`,
      `rm -rf '${partial}' '${place.library}'`,
      `cp -r '${built}' '${partial}'`,
      `mv '${partial}' '${place.library}'`,
    );
  }
  if (rustup) await run("rustup", ["toolchain", "link", "wasm", dirname(dirname(rustc))]);
}

/** Builds Rust's library for WebAssembly, with the bitcode that LTO needs and cargo would leave out. */
async function debianLibrary(rustc) {
  const crate = join(cache, "rust-library");
  const built = join(crate, "rlibs");
  const madeBy = join(built, "made-by");
  if (readIfThere(madeBy) === version(rustc)) return built;
  await step("Rust's library for WebAssembly, from source", "60 s", async () => {
    rmSync(crate, { recursive: true, force: true });
    mkdirSync(join(crate, "src"), { recursive: true });
    writeFileSync(join(crate, "src/lib.rs"), "");
    writeFileSync(join(crate, "Cargo.toml"), '[package]\nname = "empty"\nedition = "2024"\n');
    const target = join(crate, "target");
    await run(
      "cargo",
      ["build", "--release", "-Zbuild-std=std,panic_abort", "--target", wasmTarget],
      {
        cwd: crate,
        env: {
          RUSTC: rustc,
          RUSTC_BOOTSTRAP: "1",
          RUSTFLAGS: `-C embed-bitcode=yes --remap-path-prefix=${cargoHome}=cargo`,
          CARGO_TARGET_DIR: target,
        },
      },
    );
    const deps = join(target, wasmTarget, "release/deps");
    mkdirSync(built);
    for (const name of readdirSync(deps)) {
      if (name.endsWith(".rlib") && !name.startsWith("libempty-")) {
        cpSync(join(deps, name), join(built, name));
      }
    }
    rmSync(target, { recursive: true });
    writeFileSync(madeBy, version(rustc));
  });
  return built;
}

async function debianLinker() {
  await aptInstall(["lld"], "a linker for WebAssembly", "20 s");
  return realpathSync("/usr/bin/lld");
}

/** The formatter and the linter, which small installations of Rust leave out. */
async function rustComponents() {
  const has = (what, env) => capture("cargo", [what, "--version"], env) !== undefined;
  const rustup = capture("rustup", ["--version"]) !== undefined;
  if (rustup && !(has("fmt") && has("clippy"))) {
    await step("rustfmt and clippy", "10 s", () =>
      run("rustup", ["component", "add", "rustfmt", "clippy"]),
    );
  }
  if (!has("fmt")) await aptInstall(["rustfmt-web"], "rustfmt", "10 s");
  // The compiler for WebAssembly may be another one, with a clippy of its own.
  if (!has("clippy", wasmEnvironment())) await aptInstall(["rust-web-clippy"], "clippy", "10 s");
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
  mkdirSync(cache, { recursive: true });
  await step(`wasm-bindgen ${version}, kept in ${cache}`, "2 min", () =>
    run(
      "cargo",
      ["install", "wasm-bindgen-cli", "--version", version, "--root", wasmBindgenHome()],
      {
        // Outside the tree, whose settings are for its own crate. It runs for a moment only, so that
        // optimising it would take far longer than it ever saves.
        cwd: cache,
        env: { CARGO_TARGET_DIR: undefined, CARGO_PROFILE_RELEASE_OPT_LEVEL: "0" },
      },
    ),
  );
}

// ── other runtimes ──────────────────────────────────────────────────────

/** Node.js besides the one that runs us, and what else runs servers, as npm brings them. */
const runtimePackages = {
  node22: `npm:node-${process.platform}-${process.arch}@22.23.5`,
  node24: `npm:node-${process.platform}-${process.arch}@24.22.3`,
  bun: "1.4.5",
  deno: "2.9.6",
};
const runtimesHome = join(
  cache,
  `runtimes-${fingerprint([], JSON.stringify(runtimePackages)).slice(0, 12)}`,
);

/** The program of a runtime. */
export const findRuntime = (name) =>
  join(runtimesHome, "node_modules", name.startsWith("node") ? `${name}/bin/node` : `.bin/${name}`);

async function runtimes() {
  const names = Object.keys(runtimePackages);
  if (names.every((name) => capture(findRuntime(name), ["--version"]))) return;
  const wanted = names.map((name) => `${name}@${runtimePackages[name]}`);
  mkdirSync(runtimesHome, { recursive: true });
  await step(`Node.js 22 and 24, Bun and Deno, kept in ${cache}`, "20 s", () =>
    npm(["install", "--prefix", runtimesHome, "--no-package-lock", ...wanted]),
  );
}

// ── the Worker ──────────────────────────────────────────────────────────

const workerBuildVersion = "0.8.7";
const workerBuildHome = join(cache, `worker-build-${workerBuildVersion}`);
export const workerBuildCommand = () => join(workerBuildHome, "bin/worker-build");

/** What only the Rust Worker needs. */
export async function workerBuild() {
  if (capture(workerBuildCommand(), ["--version"])) return;
  mkdirSync(cache, { recursive: true });
  await step(`worker-build ${workerBuildVersion}, kept in ${cache}`, "4 min", () =>
    run(
      "cargo",
      ["install", "worker-build", "--version", workerBuildVersion, "--root", workerBuildHome],
      // As for wasm-bindgen.
      { cwd: cache, env: { CARGO_TARGET_DIR: undefined, CARGO_PROFILE_RELEASE_OPT_LEVEL: "0" } },
    ),
  );
}

const schemathesisVersion = "4.32.5";
const schemathesisHome = join(cache, `schemathesis-${schemathesisVersion}`);
export const schemathesisCommand = () => join(schemathesisHome, "bin/schemathesis");

/** What only the Worker's tests need: a program that calls an API as its document says. */
export async function schemathesis() {
  if (capture(schemathesisCommand(), ["--version"])) return;
  if (!capture("python3", ["-c", "import ensurepip"])) {
    await aptInstall(["python3-venv"], "Python, for a tester of the Worker's API", "20 s");
  }
  await step(`schemathesis ${schemathesisVersion}, kept in ${cache}`, "20 s", async () => {
    await run("python3", ["-m", "venv", schemathesisHome]);
    const wanted = `schemathesis==${schemathesisVersion}`;
    await run(join(schemathesisHome, "bin/pip"), ["install", "--quiet", wanted]);
  });
}

// ── databases ───────────────────────────────────────────────────────────

/** Where the programs of PostgreSQL are, of the newest version that Debian's packages brought. */
export function findPostgresql() {
  const home = "/usr/lib/postgresql";
  const versions = existsSync(home) ? readdirSync(home).map(Number) : [];
  return versions
    .sort((a, b) => b - a)
    .map((version) => `${home}/${version}/bin`)
    .find((path) => existsSync(join(path, "initdb")));
}

async function postgresql() {
  if (!findPostgresql()) await aptInstall(["postgresql"], "a database for the tests", "30 s");
}

async function redisAndValkey() {
  const redis = ["redis-server", "redis-sentinel"];
  if (redis.some(isMissing)) await aptInstall(redis, "Redis for the tests", "10 s");
  const valkey = ["valkey-server", "valkey-sentinel", "valkey-tools"];
  if (["valkey-server", "valkey-sentinel"].some(isMissing)) {
    await aptInstall(valkey, "Valkey for the tests", "15 s", ...backports());
  }
}

const isMissing = (program) => capture("which", [program]) === undefined;

/** How Debian 12 comes to know its backports, which bring it Valkey; later ones have it in the main archive. */
function backports() {
  if (!/^VERSION_CODENAME=bookworm$/m.test(readIfThere("/etc/os-release") ?? "")) return [];
  if (mirrorOf("bookworm-backports")) return [];
  const mirror = mirrorOf("bookworm");
  if (!mirror) throw new Problem("apt names no mirror of Debian 12 to take its backports from.");
  const source = [
    "Types: deb",
    `URIs: ${mirror}`,
    "Suites: bookworm-backports",
    "Components: main",
    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
  ];
  const lines = source.map((line) => `'${line}'`).join(" ");
  return [`printf '%s\\n' ${lines} > /etc/apt/sources.list.d/tidegate-backports.sources`];
}

/** Where this machine's apt gets a suite of Debian from; undefined when it does not. */
function mirrorOf(suite) {
  const format = ["--format", "$(RELEASE)/$(COMPONENT) $(REPO_URI)", "Created-By: Packages"];
  const targets = capture("apt-get", ["indextargets", ...format])?.split("\n") ?? [];
  return targets.find((line) => line.startsWith(`${suite}/main `))?.split(" ")[1];
}

/** Counts instructions. */
async function valgrind() {
  if (!capture("valgrind", ["--version"]))
    await aptInstall(["valgrind"], "valgrind, which counts instructions", "20 s");
}

async function prometheus() {
  if (!capture("prometheus", ["--version"])) {
    await aptInstall(["prometheus"], "Prometheus for the tests", "20 s");
  }
}

const sqliteVersion = "12.11.1";
/** Where better-sqlite3 is, for a Node.js that does not bring node:sqlite. */
export const sqliteHome = join(cache, `better-sqlite3-${sqliteVersion}`);

async function sqlite() {
  if (isBuiltin("node:sqlite")) return;
  if (existsSync(join(sqliteHome, "node_modules/better-sqlite3/build/Release"))) return;
  const usually = "5 s, or 2 min where it has to be compiled";
  await step(`better-sqlite3 ${sqliteVersion}, kept in ${cache}`, usually, () => {
    // The headers of a Node.js that was installed with them spare it a download.
    const prefix = dirname(dirname(process.execPath));
    const headers = existsSync(join(prefix, "include/node")) ? [`--nodedir=${prefix}`] : [];
    const wanted = `better-sqlite3@${sqliteVersion}`;
    mkdirSync(sqliteHome, { recursive: true });
    return npm(["install", "--prefix", sqliteHome, "--no-package-lock", ...headers, wanted]);
  });
}

// ── Debian packages and the browser ─────────────────────────────────────

export const findChromium = () =>
  ["chromium", "chromium-browser", "google-chrome"]
    .map((name) => capture("which", [name]))
    .find((path) => path !== undefined);

async function chromium() {
  if (!findChromium()) await aptInstall(["chromium"], "a browser for the demo's tests", "60 s");
}

/** Installs what is missing of them, after the commands that apt needs first. */
async function aptInstall(packages, what, usually, ...first) {
  const missing = packages.filter(
    (name) => !capture("dpkg", ["-s", name])?.includes("Status: install ok installed"),
  );
  if (missing.length === 0) return;
  if (!capture("apt-get", ["--version"])) {
    throw new Problem(`Missing: ${what}. Debian's packages for it: ${missing.join(", ")}.`);
  }
  await step(`${what} (${missing.join(", ")})`, usually, () =>
    asRoot(
      ...first,
      "apt-get update",
      `apt-get install -y --no-install-recommends ${missing.join(" ")}`,
    ),
  );
}

/** Runs commands as root; where that needs a password, it says which ones the person has to run. */
async function asRoot(...commands) {
  const script = ["sh", "-c", commands.join(" && ")];
  const [command, ...args] = process.getuid?.() === 0 ? script : ["sudo", "-n", ...script];
  const { code, output } = await attempt(command, args);
  if (code === 0) return;
  throw new Problem(`${output}\nThis has to be done as root, once:\n  ${commands.join(" &&\n  ")}`);
}

await main(import.meta, process.argv[2] === "test" ? setupTests : setup);
