// The suite depends on nothing, so it also runs where there is no Node.js.

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { findChromium } from "../../js/tools/setup.mjs";

const program = `
  import { MemoryStore } from "tidegate";
  import { storeConformance } from "tidegate/conformance";

  globalThis.run = async () => {
    let now = 1_700_000_000_123;
    const cases = [];
    const advance = async (ms) => { now += ms; };
    const makeStore = () => new MemoryStore({ now: () => now });
    storeConformance((name, body) => cases.push({ name, body }), makeStore, { advance });
    const failed = [];
    for (const { name, body } of cases) {
      await body().catch((error) => failed.push(name + ": " + error.message));
    }
    return { cases: cases.length, failed };
  };
`;

test("the suite in a browser", async () => {
  const { outputFiles, warnings } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    logLevel: "silent",
  });
  assert.deepEqual(warnings, []);
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  try {
    const page = await browser.newPage();
    // Random identifiers are for pages that were served over TLS.
    const html = { contentType: "text/html", body: "<!doctype html>" };
    await page.route("https://suite.test/", (route) => route.fulfill(html));
    await page.goto("https://suite.test/");
    await page.addScriptTag({ content: outputFiles[0].text });
    const { cases, failed } = await page.evaluate("run()");
    assert.deepEqual(failed, []);
    assert.ok(cases > 90, `${cases} cases`);
  } finally {
    await browser.close();
  }
});
