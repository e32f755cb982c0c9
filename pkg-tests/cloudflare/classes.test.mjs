// The two shard classes are one: the same replies and rows for the same batches, and each reads what the other wrote.

import assert from "node:assert/strict";
import { test } from "node:test";
import { makeDisk } from "../worker/served.mjs";
import { batchOf, randomFrom } from "./batches.mjs";
import { serve } from "./served.mjs";

const BATCHES = 600;
const name = "1/0";

test("random batches: every reply, every row, every sweep and the tally are equal", async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = randomFrom(seed);
  const worker = await serve({ env: { TIDEGATE_SHARDS: "1" } });
  const both = async (path, body = "") => {
    const send = (namespace) => worker.ask(namespace, "send", { name, path, body });
    const [js, rust] = await Promise.all([send("JS"), send("RUST")]);
    assert.deepEqual(js, rust, `seed ${seed}, ${path}: ${body}`);
    return js;
  };
  try {
    // Far ahead, so that alarms are only ever run by this test.
    let now = Date.now() + 1e10;
    await worker.ask("JS", "clock", { at: now });
    let rows = 0;
    for (let sent = 0; sent < BATCHES; sent += 1) {
      now += random(5) === 0 ? random(100_000) : random(50);
      if (random(30) === 0) now -= random(5_000);
      await worker.ask("JS", "clock", { at: now });
      const { status, text } = await both("/", batchOf(random));
      assert.ok(status === 200 || (status === 400 && text === "not a batch of version 1"));
      if (random(10) === 0)
        rows = Math.max(rows, JSON.parse((await both("/told")).text).rows.length);
      if (random(60) === 0) await both("/alarm");
    }
    assert.ok(rows >= 8, `${rows} rows`);
    const { text } = await both("/tally");
    const counts = text.split(" ").map(Number);
    assert.ok(
      counts.every((count) => count > 0),
      `all of them happen: ${text}`,
    );
    await worker.ask("JS", "clock", { at: now + 1e12 });
    await both("/alarm");
    assert.deepEqual(JSON.parse((await both("/told")).text), { rows: null, alarm: null });
  } finally {
    await worker.stop();
  }
});

test("each class reads what the other wrote", async () => {
  const disk = makeDisk();
  const limit = { limit: 10, window: "1h" };
  const turns = ["JavaScript", "Rust", "JavaScript", "Rust"];
  for (const [turn, of] of turns.entries()) {
    const worker = await serve({ disk, namespaces: { SHARED: of } });
    try {
      const { remaining } = await worker.ask("SHARED", "consume", { key: "k", cost: 2, limit });
      assert.equal(remaining, 8 - turn * 2, of);
      const text = await worker.ask("SHARED", "once", { id: "id", text: `by ${of}` });
      assert.equal(text, "by JavaScript");
    } finally {
      await worker.stop();
    }
  }
  disk.remove();
});

test("rows that fail in the middle of a batch: nothing of it was written, or counted", async () => {
  const worker = await serve({ env: { TIDEGATE_SHARDS: "1" } });
  try {
    for (const namespace of ["JS", "RUST"]) {
      const send = (path, body) => worker.ask(namespace, "send", { name, path, body });
      const line = (key) => `\ntg:l:${key}\tC;1;default=b,1,1000,10`;
      const failed = await send("/", `1;1${line("a")}${line("broken")}${line("b")}`);
      assert.equal(failed.status, 500);
      assert.match(failed.text, /no disk/);
      assert.equal((await send("/", `1;1${line("broken")}`)).status, 500);
      assert.deepEqual(JSON.parse((await send("/told")).text).rows ?? [], [], namespace);
      assert.match((await send("/tally")).text, /^0 0 0 0 0 0 0 /);
      assert.equal((await send("/", `1;1${line("a")}`)).text, "9,1000");
    }
  } finally {
    await worker.stop();
  }
});

test("an object with the number of shards in it keeps it, whatever is swept", async () => {
  const worker = await serve();
  const send = (path, body) => worker.ask("JS", "send", { name: "shards", path, body });
  try {
    assert.deepEqual(await send("/shards", "0"), { status: 400, text: "not a number of shards" });
    assert.deepEqual(await send("/shards", "8"), { status: 200, text: "8" });
    await worker.ask("JS", "clock", { at: Date.now() + 1e13 });
    await send("/alarm");
    assert.deepEqual(await send("/shards", "16"), { status: 200, text: "8" });
  } finally {
    await worker.stop();
  }
});
