// Whose budget a request is charged to: the client's, as far as trusted proxies tell it, and nobody's invention.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import express from "express";
import fastify from "fastify";
import { onEvent } from "tidegate";
import { expressLimit, fastifyLimit } from "tidegate/http";
import { hosts, listening } from "./hosts.mjs";

const limit = { limit: 1_000, window: "1m" };

/** The keys that decisions were made for. */
function listened(t) {
  const keys = [];
  t.after(
    onEvent((event) => {
      if (event.type === "decision") keys.push(event.key);
    }),
  );
  return keys;
}

/** Where a request comes from, by what is trusted and what is told; the peer is this machine. */
const cases = [
  [undefined, { "x-forwarded-for": "203.0.113.9" }, "127.0.0.1"],
  [1, {}, "127.0.0.1"],
  [1, { "x-forwarded-for": "203.0.113.9" }, "203.0.113.9"],
  // What stands further left is the client's own invention.
  [1, { "x-forwarded-for": "198.51.100.1, 203.0.113.9" }, "203.0.113.9"],
  [2, { "x-forwarded-for": "198.51.100.1, 203.0.113.9" }, "198.51.100.1"],
  // Fewer than told: this one came another way.
  [2, { "x-forwarded-for": "203.0.113.9" }, "127.0.0.1"],
  [1, { "x-forwarded-for": "203.0.113.9, junk" }, "127.0.0.1"],
  [1, { "x-forwarded-for": "2001:DB8:1:2::9" }, "2001:db8:1:2::/64"],
  [1, { "x-forwarded-for": "::ffff:203.0.113.9" }, "203.0.113.9"],
  [["127.0.0.1"], { "x-forwarded-for": "203.0.113.9" }, "203.0.113.9"],
  [["10.0.0.0/8"], { "x-forwarded-for": "203.0.113.9" }, "127.0.0.1"],
  [
    ["127.0.0.0/8", "10.0.0.0/8"],
    { "x-forwarded-for": "198.51.100.1, 203.0.113.9, 10.1.2.3" },
    "203.0.113.9",
  ],
  [
    "cloudflare",
    { "cf-connecting-ip": "203.0.113.9", "x-forwarded-for": "1.2.3.4" },
    "203.0.113.9",
  ],
  ["cloudflare", { "x-forwarded-for": "203.0.113.9" }, "127.0.0.1"],
];

const withPeers = Object.entries(hosts).filter(([name]) => name !== "limitFetch");

for (const [name, start] of withPeers) {
  test(`${name}: the client's address is the key`, async (t) => {
    const keys = listened(t);
    for (const [trustProxy, headers, key] of cases) {
      const url = await start(t, { limit, trustProxy }, []);
      assert.equal((await fetch(url, { headers })).status, 200);
      assert.equal(keys.pop(), key, JSON.stringify({ trustProxy, headers }));
    }
  });
}

test("limitFetch: the same, of what a Request tells", async (t) => {
  const keys = listened(t);
  for (const [trustProxy, headers, key] of cases) {
    if (key === "127.0.0.1") continue;
    const url = await hosts.limitFetch(t, { limit, trustProxy }, []);
    assert.equal((await fetch(url, { headers })).status, 200);
    assert.equal(keys.pop(), key, JSON.stringify({ trustProxy, headers }));
  }
});

describe("the framework's own idea of an address", () => {
  const headers = { "x-forwarded-for": "203.0.113.9" };

  test("express: request.ip", async (t) => {
    const keys = listened(t);
    const app = express();
    app.set("trust proxy", 1);
    app.use(expressLimit({ limit }), (_, response) => response.end());
    await fetch(await listening(t, createServer(app)), { headers });
    await fetch(await listening(t, createServer(app)), {
      headers: { "x-forwarded-for": "junk" },
    });
    assert.deepEqual(keys, ["203.0.113.9", "127.0.0.1"]);
  });

  test("fastify: request.ip", async (t) => {
    const keys = listened(t);
    const app = fastify({ trustProxy: "127.0.0.1" });
    await app.register(fastifyLimit, { limit });
    app.get("/", async () => "");
    t.after(() => app.close());
    await fetch(await app.listen({ port: 0, host: "127.0.0.1" }), { headers });
    assert.deepEqual(keys, ["203.0.113.9"]);
  });
});
