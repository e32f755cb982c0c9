// The same on other versions of Node.js, and on what else runs servers.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { findChromium, findRuntime } from "../../js/tools/setup.mjs";
import { attempt } from "../../js/tools/shell.mjs";
import { statuses } from "../compat/served.mjs";
import { startWorker } from "../workerd.mjs";
import { listening } from "./hosts.mjs";

const here = import.meta.dirname;

for (const name of ["node22", "node24"]) {
  test(`all frameworks on ${name}`, async () => {
    const files = ["frameworks", "proxies"].map((suite) => join(here, `${suite}.test.mjs`));
    // Without this a runner within a runner reports to the outer one.
    const env = { NODE_TEST_CONTEXT: undefined };
    const args = ["--test", "--test-reporter=spec", ...files];
    const { code, output } = await attempt(findRuntime(name), args, { env });
    assert.equal(code, 0, output);
    const passed = Number(/^ℹ pass (\d+)/m.exec(output)[1]);
    assert.ok(passed > 70, `${passed} cases`);
  });
}

/** What every server of the fetch style answers: two with their bodies, and a refusal; each user for itself. */
async function limited(url) {
  const post = (user) => fetch(url, { method: "POST", body: "hello", headers: { "x-user": user } });
  const first = await post("a");
  assert.deepEqual([first.status, await first.text()], [200, "hello"]);
  assert.equal(first.headers.get("ratelimit-policy"), '"default";q=2;w=60');
  assert.equal(first.headers.get("ratelimit"), '"default";r=1;t=30');
  await (await post("a")).text();
  const refused = await post("a");
  assert.equal(refused.status, 429);
  assert.match(refused.headers.get("retry-after"), /^(2\d|30)$/);
  assert.equal((await refused.json()).reason, "limited");
  assert.equal((await post("b")).status, 200);
}

const programs = {
  deno: [
    "run",
    "--no-lock",
    "--node-modules-dir=manual",
    "--allow-net",
    "--allow-read",
    "--allow-env",
  ],
  bun: ["run"],
};

for (const [name, args] of Object.entries(programs)) {
  test(`limitFetch and honoLimit on ${name}`, async () => {
    const child = spawn(findRuntime(name), [...args, join(here, "edge-server.mjs")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [port] = await once(child.stdout, "data");
      const url = `http://127.0.0.1:${Number(port)}`;
      await limited(url);
      if (name === "deno") assert.equal(await switched(`${url}/socket`), 101);
      // Hono finds out who is connected.
      assert.deepEqual(await statuses(`${url}/hono`, 3), [200, 200, 429]);
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });
}

/** The status of the answer to a request for a WebSocket. */
async function switched(url, headers) {
  const upgrade = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  const sent = request(url, { headers: { ...headers, ...upgrade } }).end();
  const [{ statusCode }, socket] = await once(sent, "upgrade");
  socket.destroy();
  return statusCode;
}

const worker = `
  import { Hono } from "hono";
  import { honoLimit, limitFetch } from "tidegate/http";

  const limit = { limit: 2, window: "1m" };
  const check = limitFetch({ limit, key: (request) => request.headers.get("x-user") });
  const app = new Hono();
  app.use(honoLimit({ limit, trustProxy: "cloudflare" }));
  app.get("/hono", (c) => c.text("hello"));
  app.get("/socket", () => new Response(null, { status: 101, webSocket: new WebSocketPair()[0] }));

  export default {
    async fetch(request, env, context) {
      if (new URL(request.url).pathname !== "/") return app.fetch(request, env, context);
      const { response, headers } = await check(request);
      return response ?? new Response(request.body, { headers });
    },
  };
`;

test("limitFetch and honoLimit on workerd", async () => {
  const { url, stop } = await startWorker(worker, here);
  try {
    await limited(url);
    const from = (address) => ({ headers: { "cf-connecting-ip": address } });
    assert.deepEqual(await statuses(`${url}/hono`, 3, from("203.0.113.9")), [200, 200, 429]);
    assert.deepEqual(await statuses(`${url}/hono`, 1, from("203.0.113.10")), [200]);
    assert.equal(await switched(`${url}/socket`, from("203.0.113.11").headers), 101);
  } finally {
    await stop();
  }
});

const serviceWorker = `
  import { limitFetch } from "tidegate/http";

  const limit = limitFetch({ limit: { limit: 2, window: "1m" }, key: (request) => request.url });

  self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener("fetch", (event) => {
    if (!event.request.url.endsWith("/api")) return;
    event.respondWith(limit(event.request).then(({ response }) => response ?? fetch(event.request)));
  });
`;

const page = `<!doctype html><script>
  const ask = async () => {
    const response = await fetch("/api");
    return [response.status, response.headers.get("retry-after"), await response.text()];
  };
  globalThis.run = async () => {
    await navigator.serviceWorker.register("/worker.js");
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) {
      await new Promise((taken) => navigator.serviceWorker.addEventListener("controllerchange", taken));
    }
    return [await ask(), await ask(), await ask()];
  };
</script>`;

test("limitFetch in a browser's service worker spares the server", async (t) => {
  const { outputFiles } = await build({
    stdin: { contents: serviceWorker, resolveDir: here },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    logLevel: "silent",
  });
  const files = {
    "/": ["text/html", page],
    "/worker.js": ["text/javascript", outputFiles[0].text],
    "/api": ["text/plain", "from the server"],
  };
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    const [type, body] = files[request.url] ?? ["text/plain", ""];
    response.setHeader("content-type", type);
    response.end(body);
  });
  const url = await listening(t, server);
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  t.after(() => browser.close());
  const tab = await browser.newPage();
  await tab.goto(url);
  const [first, second, third] = await tab.evaluate("run()");
  assert.deepEqual([first, second], Array(2).fill([200, null, "from the server"]));
  assert.equal(third[0], 429);
  assert.match(third[1], /^(2\d|30)$/);
  assert.equal(asked.filter((path) => path === "/api").length, 2);
});
