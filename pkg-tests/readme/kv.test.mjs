// The Workers over KV of the documents, on workerd.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { serveKv, withObjects } from "../cloudflare/kv-server.mjs";
import { startWorker } from "../workerd.mjs";
import { snippetsOf } from "./snippets.mjs";

/** Two isolates of a snippet over one KV, and what they answer. */
async function twoOf(document, wanted, body) {
  const { code } = snippetsOf(document).find(({ name }) => name === wanted);
  const served = await serveKv();
  const { kv, stop } = served;
  const options = () => (code.includes("TidegateShard") ? withObjects(served) : served);
  const start = () => startWorker(code, import.meta.dirname, options());
  const workers = [await start(), await start()];
  const asking = (worker) => async (headers) => {
    const response = await fetch(worker.url, { headers });
    return [response.status, await response.text()];
  };
  try {
    await body(...workers.map(asking), kv);
  } finally {
    for (const worker of workers) await worker.stop();
    stop();
  }
}

const from = (address) => ({ "cf-connecting-ip": address });

/** Writes are behind the answers. */
async function written(kv, count) {
  for (let turn = 0; kv.writes < count && turn < 200; turn += 1) await pause(25);
  assert.equal(kv.writes, count);
}

test("the README's soft limit", () =>
  twoOf("README.md", "kv", async (here, there, kv) => {
    const ask = () => here(from("203.0.113.9"));
    const answers = await Promise.all(Array.from({ length: 130 }, ask));
    const admitted = answers.filter(([status]) => status === 200).length;
    // A hundred, and what leaks meanwhile.
    assert.ok(admitted >= 100 && admitted < 115, `${admitted} admitted`);
    assert.deepEqual(await there(from("203.0.113.10")), [200, "hello"]);
    await written(kv, 3);
  }));

test("a deny list is known to the next isolate, which asks its exact limit nothing", () =>
  twoOf("js/docs/kv.md", "denylist", async (here, there, kv) => {
    const ask = () => here(from("203.0.113.9"));
    for (let call = 0; call < 5; call += 1) assert.deepEqual(await ask(), [200, "hello"]);
    assert.deepEqual(await ask(), [429, "slow down"]);
    assert.deepEqual(await ask(), [403, "denied"]);
    await written(kv, 1);
    assert.deepEqual(await there(from("203.0.113.9")), [403, "denied"]);
    assert.deepEqual(await there(from("203.0.113.10")), [200, "hello"]);
  }));

test("an id that was handled is a hint to the next isolate", () =>
  twoOf("js/docs/kv.md", "hints", async (here, there, kv) => {
    const [one, two] = ["one", "two"].map((id) => ({ "webhook-id": id }));
    assert.deepEqual(await here(one), [200, "handled 1"]);
    assert.deepEqual(await here(one), [200, "seen, says KV"]);
    await written(kv, 1);
    assert.deepEqual(await there(one), [200, "seen, says KV"]);
    assert.deepEqual(await there(two), [200, "handled 1"]);
  }));
