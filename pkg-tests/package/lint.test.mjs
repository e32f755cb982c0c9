// What two linters of packages say of the tarball.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { manifest, tarball, unpacked } from "./project.mjs";

test("publint has nothing to say", async () => {
  const { messages, pkg } = await publint({ pkgDir: unpacked, pack: false, strict: true });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  );
});

test("types resolve in every way that a module can be imported", async () => {
  const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)));
  const entries = Object.keys(manifest().exports);
  assert.deepEqual(Object.keys(analysis.entrypoints).sort(), entries.sort());
  // Modules only: CommonJS gets them by require(), in the versions of Node.js that we name; older resolutions, not at all.
  const passed = ["node10", "node16-cjs"];
  const problems = analysis.problems.filter(
    ({ kind, resolutionKind }) => kind !== "CJSResolvesToESM" && !passed.includes(resolutionKind),
  );
  assert.deepEqual(problems, []);
});
