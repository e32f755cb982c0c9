// Puts the package where tests find what users install.

import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { npm, root, run } from "../js/tools/shell.mjs";

/** Packs the package and puts it where the tests' imports of "tidegate" find it before the workspace. */
export async function pack() {
  const place = join(root, "pkg-tests/node_modules");
  const unpacked = join(place, "tidegate");
  rmSync(place, { recursive: true, force: true });
  mkdirSync(unpacked, { recursive: true });
  await npm(["pack", "--workspace", "js", "--pack-destination", place]);
  const tarball = join(place, "tidegate.tgz");
  const packed = readdirSync(place).find((file) => file.endsWith(".tgz"));
  renameSync(join(place, packed), tarball);
  await run("tar", ["-xzf", tarball, "-C", unpacked, "--strip-components=1"]);
}
