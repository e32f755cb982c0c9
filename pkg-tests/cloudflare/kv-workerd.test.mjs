// The Hono Worker on workerd, over its own KV binding. Each worker is an isolate at the one location there is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter } from "tidegate";
import { KvStore } from "tidegate/cloudflare";
import { startWorker } from "../workerd.mjs";
import { serveKv, withObjects } from "./kv-server.mjs";

const ADMIN = "0123456789abcdef";
const source = readFileSync(join(import.meta.dirname, "hono-worker.mjs"), "utf8");
let served;
let here;

before(async () => {
  served = await serveKv();
  here = await isolate();
});

after(async () => {
  await here?.stop();
  served?.stop();
});

function isolate(module = source) {
  const env = { ADMIN_TOKEN: ADMIN };
  return startWorker(module, import.meta.dirname, { env, ...withObjects(served) });
}

let addresses = 0;
function fresh() {
  addresses += 1;
  return `198.51.${addresses >> 8}.${addresses & 255}`;
}

function ask({ url }, path, address, options = {}) {
  const headers = { "cf-connecting-ip": address, ...options.headers };
  return fetch(url + path, { ...options, headers });
}
const hello = (worker, address) => ask(worker, "/api/hello", address);
const left = (response) => Number(/r=(\d+)/.exec(response.headers.get("ratelimit"))[1]);

/** What KV holds, as a location sees it that asks for the first time. */
async function inKv(key, prefix) {
  const limit = { algorithm: "fixed-window", limit: 20, window: "1h" };
  const store = new KvStore(served.kv.location());
  return new Limiter({ store, limit, prefix, bestEffort: true }).peek(key);
}

/** Writes are behind the answers. */
async function eventually(look, wanted) {
  const end = performance.now() + 10_000;
  while ((await look()) !== wanted && performance.now() < end) await pause(50);
  assert.equal(await look(), wanted);
}

describe("a soft limit", () => {
  test("admits its limit in one isolate, of 200 requests at once", async () => {
    const address = fresh();
    const responses = await Promise.all(Array.from({ length: 200 }, () => hello(here, address)));
    const count = (wanted) => responses.filter(({ status }) => status === wanted).length;
    assert.deepEqual([count(200), count(429)], [20, 180]);
    assert.ok(responses.every(({ headers }) => headers.has("ratelimit")));
    await eventually(async () => (await inKv(address)).remaining, 0);
    assert.equal(served.kv.refused, 0);
  });

  test("is written when the last request is long answered, and read by the next isolate", async () => {
    const address = fresh();
    for (let call = 0; call < 8; call += 1) assert.equal((await hello(here, address)).status, 200);
    await eventually(async () => (await inKv(address)).remaining, 12);
    const there = await isolate();
    try {
      assert.equal(left(await hello(there, address)), 11);
    } finally {
      await there.stop();
    }
  });

  test("does not wait for its writes", async () => {
    const address = fresh();
    let put;
    const held = new Promise((resolve) => {
      put = resolve;
    });
    served.kv.fault = (method) => (method === "PUT" ? held : undefined);
    try {
      assert.equal((await hello(here, address)).status, 200);
      assert.equal(left(await hello(here, address)), 18);
      assert.equal((await inKv(address)).remaining, 20, "nothing is written yet");
    } finally {
      served.kv.fault = undefined;
      put();
    }
    await eventually(async () => (await inKv(address)).remaining, 18);
  });

  test("writes what KV refused at first", async () => {
    const address = fresh();
    let refusals = 2;
    served.kv.fault = (method) => {
      if (method === "GET" || refusals === 0) return;
      refusals -= 1;
      throw new Error("KV PUT failed: 429 Too Many Requests");
    };
    try {
      for (let call = 0; call < 3; call += 1) await hello(here, address);
      await eventually(async () => (await inKv(address)).remaining, 17);
    } finally {
      served.kv.fault = undefined;
    }
    assert.equal(refusals, 0);
  });
});

test("a deny list: an address is denied everywhere, until it is let in", async () => {
  const [bad, good, admin] = [fresh(), fresh(), fresh()];
  const change = async (method, token) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await ask(here, `/admin/denied/${bad}`, admin, { method, headers });
    return response.status;
  };
  assert.equal(await change("PUT", "guess"), 401);
  assert.equal(await change("PUT", ADMIN), 200);
  assert.deepEqual([(await hello(here, bad)).status, (await hello(here, good)).status], [403, 200]);
  await eventually(async () => (await inKv(bad, "deny")).reason, "blocked");
  const there = await isolate();
  try {
    assert.equal((await hello(there, bad)).status, 403);
  } finally {
    await there.stop();
  }
  assert.equal(await change("DELETE", ADMIN), 200);
  assert.equal((await hello(here, bad)).status, 200);
  await eventually(async () => (await inKv(bad, "deny")).reason, "ok");
});

test("webhooks that were seen are known, and payments are limited exactly", async () => {
  const address = fresh();
  const post = (path) => ask(here, path, address, { method: "POST" });
  const told = async (id) => (await post(`/webhooks/${id}`)).text();
  assert.deepEqual(
    [await told("one"), await told("one"), await told("two")],
    ["new", "seen", "new"],
  );
  const paid = await Promise.all(Array.from({ length: 50 }, () => post("/pay")));
  assert.equal(paid.filter(({ status }) => status === 200).length, 3);
});

describe("a KV that does not answer", () => {
  const faults = {
    hangs: () => new Promise(() => {}),
    fails: () => Promise.reject(new Error("KV GET failed: 500 Internal Server Error")),
  };

  for (const [title, fault] of Object.entries(faults)) {
    test(`when it ${title}, the deny list lets in and the isolate decides`, async () => {
      const address = fresh();
      served.kv.fault = fault;
      try {
        const gone = ask(here, "/api/hello", address, { signal: AbortSignal.timeout(20) });
        await gone.catch(() => {});
        const answers = await Promise.all(Array.from({ length: 30 }, () => hello(here, address)));
        const admitted = answers.filter(({ status }) => status === 200).length;
        assert.ok(admitted === 20 || admitted === 19, `${admitted}, and one that went away`);
      } finally {
        served.kv.fault = undefined;
      }
      // It is left alone for a moment, and then asked again.
      const later = fresh();
      await eventually(async () => {
        await hello(here, later);
        return served.kv.keys.some((key) => key.endsWith(`:${later}`));
      }, true);
    });
  }
});
