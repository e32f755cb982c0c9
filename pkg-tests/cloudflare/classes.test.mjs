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

test("an object with the number of shards in it keeps it, whichever class sweeps", async () => {
  const disk = makeDisk();
  const turns = [
    ["JavaScript", "0", 400, "not a number of shards"],
    ["JavaScript", "8", 200, "8"],
    // It has a number by default, and leaves the row alone.
    ["Rust", "16", 200, "64"],
    ["JavaScript", "16", 200, "8"],
  ];
  for (const [of, body, status, text] of turns) {
    const worker = await serve({ disk, namespaces: { SHARED: of } });
    const send = (path, body) => worker.ask("SHARED", "send", { name: "shards", path, body });
    try {
      assert.deepEqual(await send("/shards", body), { status, text });
      await worker.ask("SHARED", "clock", { at: Date.now() + 1e13 });
      assert.deepEqual(await send("/alarm"), { status: 200, text: "null" }, of);
    } finally {
      await worker.stop();
    }
  }
  disk.remove();
});

test("an alarm that cannot be set fails no answer, and is tried again", async () => {
  const worker = await serve({ env: { TIDEGATE_SHARDS: "1" } });
  try {
    for (const namespace of ["JS", "RUST"]) {
      const send = (path, body) => worker.ask(namespace, "send", { name, path, body });
      const consume = async () => (await send("/", "1;1\ntg:l:a\tC;1;default=b,1,1000,10")).status;
      const alarm = async () => JSON.parse((await send("/told")).text).alarm;
      await worker.ask(namespace, "fault", { fault: "no alarms" });
      assert.deepEqual([await consume(), await consume(), await alarm()], [200, 200, null]);
      await worker.ask(namespace, "fault", {});
      assert.equal(await consume(), 200);
      assert.ok((await alarm()) > 0, namespace);
    }
  } finally {
    await worker.stop();
  }
});

test("a setting that is no number of shards: the same answers by both", async () => {
  for (const TIDEGATE_SHARDS of ["+8", "08", "8.0", "0", "1025", "many"]) {
    const worker = await serve({ env: { TIDEGATE_SHARDS } });
    try {
      for (const [path, body] of [
        ["/", "1;8\ntg:l:a\tU;"],
        ["/shards", "8"],
      ]) {
        for (const namespace of ["JS", "RUST"]) {
          const answer = await worker.ask(namespace, "send", { name, path, body });
          assert.deepEqual(answer, {
            status: 503,
            text: "TIDEGATE_SHARDS must be a whole number from 1 to 1024",
          });
        }
      }
    } finally {
      await worker.stop();
    }
  }
  const worker = await serve({ env: { TIDEGATE_SHARDS: " 8 " } });
  for (const namespace of ["JS", "RUST"]) {
    const answer = await worker.ask(namespace, "send", { name, path: "/shards", body: "64" });
    assert.deepEqual(answer, { status: 200, text: "8" });
  }
  await worker.stop();
});
