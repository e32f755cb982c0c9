import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { directory, execute, node, project, use, works } from "./project.mjs";

test("import", (t) => {
  const path = project(t, { "main.mjs": `import { Limiter } from "tidegate";${use}` });
  assert.equal(node("main.mjs", path), works);
});

test("require() from CommonJS", (t) => {
  const path = project(t, { "main.cjs": `const { Limiter } = require("tidegate");${use}` });
  assert.equal(execute(process.execPath, ["--no-warnings", "main.cjs"], path).trim(), works);
});

for (const format of ["esm", "cjs"]) {
  test(`an esbuild bundle (${format}) that was moved elsewhere`, async (t) => {
    const path = project(t, { "main.mjs": `import { Limiter } from "tidegate";${use}` });
    const name = format === "esm" ? "bundle.mjs" : "bundle.cjs";
    const { warnings } = await build({
      absWorkingDir: path,
      entryPoints: ["main.mjs"],
      outfile: name,
      bundle: true,
      minify: true,
      platform: "node",
      format,
      logLevel: "silent",
    });
    assert.deepEqual(warnings, []);
    const elsewhere = directory(t, {});
    renameSync(join(path, name), join(elsewhere, name));
    assert.equal(node(name, elsewhere), works);
  });
}
