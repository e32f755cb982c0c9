//! What is sent or served as text goes into the crate without what only its readers need, and the Redis
//! script with the name that servers know it by.

use std::path::Path;
use std::{env, fs, io};

use sha1::{Digest, Sha1};

const SCRIPT: &str = "src/store/redis/step.lua";
const OPENAPI: &str = "src/worker/openapi.json";

fn main() -> io::Result<()> {
    bare();
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let write = |name: &str, text: String| fs::write(Path::new(&out).join(name), text);
    let script = lines(SCRIPT)?.join("\n");
    let digest = Sha1::digest(script.as_bytes());
    write("step.sha1", digest.iter().map(|byte| format!("{byte:02x}")).collect())?;
    write("step.lua", script)?;
    write("openapi.json", lines(OPENAPI)?.concat())
}

/// The module that every user of the npm package has does without the standard library: what that keeps ready to tell
/// of a panic, which nobody would hear, is more than all that decides.
fn bare() {
    println!("cargo::rustc-check-cfg=cfg(bare)");
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if has("NPM") && !has("NPM_STORES") && !has("WORKER") {
        println!("cargo::rustc-cfg=bare");
    }
}

/// The lines of a file without indentation; neither empty ones nor those that are only a comment of Lua's.
fn lines(path: &str) -> io::Result<Vec<String>> {
    println!("cargo::rerun-if-changed={path}");
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(str::trim);
    Ok(lines.filter(|line| !line.is_empty() && !line.starts_with("--")).map(Into::into).collect())
}
