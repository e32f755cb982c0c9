// RedisRestStore in a browser, whose page is of another origin than the server.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { findChromium } from "../../js/tools/setup.mjs";
import { TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

test("the suite in a browser", async () => {
  const { outputFiles, warnings } = await build({
    stdin: {
      contents: 'import { runSuite } from "./suite.mjs"; globalThis.runSuite = runSuite;',
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    logLevel: "silent",
  });
  assert.deepEqual(warnings, []);
  const served = await serve();
  const pages = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
  }).listen(0, "127.0.0.1");
  await once(pages, "listening");
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${pages.address().port}/`);
    await page.addScriptTag({ content: outputFiles[0].text });
    const options = JSON.stringify({ url: served.proxy.url, token: TOKEN, prefix: "browser" });
    const { cases, failed } = await page.evaluate(`runSuite(${options})`);
    assert.deepEqual(failed, []);
    assert.ok(cases > 70, `${cases} cases`);
  } finally {
    await browser.close();
    pages.close();
    await served.stop();
  }
});
