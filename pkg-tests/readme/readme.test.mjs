// Runs every JavaScript snippet of the README, and compares what it prints with its "// prints:" lines.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { io } from "socket.io-client";
import { freePort, Server } from "../redis/servers.mjs";
import { TOKEN } from "../redis-rest/proxy.mjs";
import { serve } from "../redis-rest/served.mjs";
import { makeDisk } from "../worker/served.mjs";
import { startWorker } from "../workerd.mjs";
import { prints, snippetsOf, start } from "./snippets.mjs";

const snippets = snippetsOf("README.md");

test("the README has a snippet for each kind of user", () => {
  assert.ok(snippets.length >= 5);
});

for (const snippet of snippets.filter(({ name }) => name.startsWith("snippet"))) {
  test(snippet.name, () => prints(snippet));
}

test("the Redis snippet shares one bucket", async () => {
  const snippet = snippets.find(({ name }) => name === "redis");
  const server = await Server.start();
  try {
    const { child, output } = start(snippet, snippet.code.replace("6379", String(server.port)));
    const [code] = await once(child, "close");
    assert.equal(code, 0, output.error);
    assert.equal(output.out, "20\n");
  } finally {
    await server.stop();
  }
});

test("the edge snippet is a Worker that limits each address", async () => {
  const { code } = snippets.find(({ name }) => name === "edge");
  const served = await serve();
  const env = { UPSTASH_REDIS_REST_URL: served.proxy.url, UPSTASH_REDIS_REST_TOKEN: TOKEN };
  // So that nothing drains while the test runs.
  const slow = code.replace('"10s"', '"1h"');
  const worker = await startWorker(slow, import.meta.dirname, { env });
  try {
    const ask = async (address) => {
      const headers = { "cf-connecting-ip": address };
      const response = await fetch(worker.url, { headers });
      return [response.status, await response.text(), response.headers.get("retry-after")];
    };
    for (let call = 0; call < 5; call += 1) {
      assert.deepEqual(await ask("203.0.113.9"), [200, "hello", null]);
    }
    const [status, text, seconds] = await ask("203.0.113.9");
    assert.deepEqual([status, text], [429, "slow down"]);
    assert.ok(Number(seconds) > 600, seconds);
    assert.equal((await ask("203.0.113.10"))[0], 200);
  } finally {
    await worker.stop();
    await served.stop();
  }
});

test("the objects' snippet is a Worker that limits each address", async () => {
  const { code } = snippets.find(({ name }) => name === "objects");
  const disk = makeDisk();
  const worker = await startWorker(code.replace('"10s"', '"1h"'), import.meta.dirname, {
    bindings: ['(name = "TIDEGATE_SHARD", durableObjectNamespace = "TidegateShard")'],
    services: [`(name = "disk", disk = (path = ${JSON.stringify(disk.path)}, writable = true))`],
    config: `durableObjectNamespaces = [(className = "TidegateShard", uniqueKey = "tidegate", enableSql = true)], durableObjectStorage = (localDisk = "disk")`,
  });
  try {
    const ask = async (address) =>
      (await fetch(worker.url, { headers: { "cf-connecting-ip": address } })).status;
    const asked = await Promise.all(Array.from({ length: 8 }, () => ask("203.0.113.9")));
    assert.deepEqual(asked.sort(), [200, 200, 200, 200, 200, 429, 429, 429]);
    assert.equal(await ask("203.0.113.10"), 200);
  } finally {
    await worker.stop();
    disk.remove();
  }
});

test("the recipe's three servers share one leaky bucket", async () => {
  const snippet = snippets.find(({ name }) => name === "fleet");
  const redis = await Server.start();
  const code = snippet.code.replace("6379", String(redis.port));
  const ports = await Promise.all([1, 2, 3].map(freePort));
  const servers = ports.map((PORT) => start(snippet, code, { PORT }));
  const connect = (port) => io(`http://127.0.0.1:${port}`, { transports: ["websocket"] });
  const clients = ports.map(connect);
  try {
    await Promise.all(clients.map((client) => once(client, "connect")));
    const started = performance.now();
    const chat = (client) => client.timeout(5_000).emitWithAck("chat", "hello");
    const sent = clients.flatMap((client) => Array.from({ length: 10 }, () => chat(client)));
    const answers = await Promise.all(sent);
    const leaked = ((performance.now() - started) / 1_000) * 2.5;
    const admitted = answers.filter(({ ok }) => ok).length;
    assert.ok(admitted >= 20 && admitted <= 20 + leaked, `${admitted} of 20 and ${leaked}`);
    const { error } = answers.find(({ ok }) => !ok);
    assert.deepEqual([error.code, error.limit, error.remaining], ["RATE_LIMITED", 20, 0]);
    assert.ok(error.retryAfterMs > 0 && error.retryAfterMs <= 400, "one unit leaks in 400 ms");
  } finally {
    for (const client of clients) client.close();
    for (const { child } of servers) child.kill();
    await Promise.all(servers.map(({ child }) => once(child, "close")));
    await redis.stop();
  }
  assert.deepEqual(
    servers.map(({ output }) => output.error),
    ["", "", ""],
  );
});

test("the gateway's snippet limits and deduplicates real clients", async () => {
  const snippet = snippets.find(({ name }) => name === "gateway");
  const port = await freePort();
  const { child, output } = start(snippet, snippet.code.replace("3000", String(port)));
  const client = io(`http://127.0.0.1:${port}`, { transports: ["websocket"] });
  try {
    await once(client, "connect");
    const chat = (text) => client.timeout(5_000).emitWithAck("chat", text);
    const answers = [];
    for (let sent = 0; sent < 6; sent += 1) answers.push(await chat("hello"));
    assert.deepEqual(
      answers.map(({ ok }) => ok),
      [true, true, true, true, true, false],
    );
    assert.equal(answers[5].error.code, "RATE_LIMITED");

    const order = (item) => client.timeout(5_000).emitWithAck("order", { mid: "m-1", item });
    assert.deepEqual(await order("tea"), { ok: true, item: "tea" });
    assert.deepEqual(await order("coffee"), { ok: true, item: "tea" }, "the first acknowledgement");
  } finally {
    client.close();
    child.kill();
    await once(child, "close");
  }
  assert.equal(output.error, "");
});
