// What an import costs, told by what is read and done and not by the clock, and what entries share.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { Limiter, metrics, TidegateError } from "tidegate";
import { limitFetch } from "tidegate/http";
import { RedisRestStore } from "tidegate/redis-rest";
import { execute, manifest, unpacked, use, works } from "./project.mjs";

const entries = Object.entries(manifest().exports).filter(([, { node }]) => node);
const load = (file) => import(pathToFileURL(join(unpacked, file)));

/** Runs a module that finds the package as these tests do, and answers what it prints. */
const run = (source) =>
  execute(process.execPath, ["--input-type=module", "-e", source], import.meta.dirname).trim();

/** Most files that an entry is made of; each costs about half a millisecond. */
const most = { ".": 4, "./http": 5, "./redis": 7, "./socket.io": 5 };

for (const [entry, files] of Object.entries(most)) {
  test(`${entry} is at most ${files} files`, async () => {
    const contents = `export * from "${join("tidegate", entry)}";`;
    const { metafile } = await build({
      stdin: { contents, resolveDir: import.meta.dirname },
      bundle: true,
      platform: "node",
      // As Node.js itself: esbuild would ask for "module" first.
      conditions: ["node"],
      format: "esm",
      write: false,
      metafile: true,
    });
    const read = Object.keys(metafile.inputs).filter((file) => file !== "<stdin>");
    assert.ok(read.length >= 3 && read.length <= files, read.join("\n"));
  });
}

test("a bundle for Node.js leaves out what is not used", async () => {
  const contents = 'export { Limiter } from "tidegate";';
  const { metafile } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    platform: "node",
    format: "esm",
    write: false,
    metafile: true,
  });
  const [{ inputs }] = Object.values(metafile.outputs);
  const used = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const names = used.map(([file]) => file.replace(/^.*dist\//, ""));
  assert.ok(names.includes("wasm/gen/core.js"), names.join("\n"));
  assert.ok(!names.some((file) => /stores|tiers|burst/.test(file)), names.join("\n"));
});

test("no import compiles anything, or decodes byte by byte", () => {
  const names = entries.map(([entry]) => join("tidegate", entry));
  const source = `
    const { Module } = WebAssembly;
    let compiled = 0;
    WebAssembly.Module = class extends Module {
      constructor(bytes) {
        super(bytes);
        compiled += 1;
      }
    };
    Uint8Array.from = globalThis.atob = () => {
      throw new Error("slow");
    };
    for (const name of ${JSON.stringify(names)}) await import(name);
    console.log(compiled);
    const { Limiter } = await import("tidegate");
    ${use}
    setImmediate(() => console.log(compiled));
  `;
  assert.equal(run(source), `0\n${works}\n1`);
});

const fromBase64 =
  'const { Buffer } = globalThis; Uint8Array.fromBase64 = (text) => Buffer.from(text, "base64");';
const hosts = {
  "with Buffer": "delete Uint8Array.fromBase64;",
  "with Uint8Array.fromBase64": `${fromBase64} delete globalThis.Buffer;`,
  "with atob alone": "delete Uint8Array.fromBase64; delete globalThis.Buffer;",
};

for (const [name, host] of Object.entries(hosts)) {
  test(`a host ${name}`, () => {
    assert.equal(run(`${host} const { Limiter } = await import("tidegate");${use}`), works);
  });
}

test("a host without WebAssembly is told so", () => {
  const source = `delete globalThis.WebAssembly;
    const { Limiter } = await import("tidegate");
    try { new Limiter({ limit: { limit: 1, window: "1s" } }); } catch (error) { console.log(error.message); }`;
  assert.match(run(source), /WebAssembly/);
});

test("Node.js and bundlers are given the same exports, by the same names", async () => {
  assert.ok(entries.length >= 10);
  for (const [entry, { node, default: modules }] of entries) {
    const namesIn = async (file) =>
      Object.entries(await load(file)).map(([name, value]) => [name, typeof value, value.name]);
    assert.deepEqual(await namesIn(node), await namesIn(modules), entry);
  }
});

test("entries share the error class, the symbol by which stores are known, and the counters", async () => {
  const limit = { limit: 1, window: "1m" };
  assert.throws(() => new RedisRestStore({}), TidegateError);
  new Limiter({ limit, store: new RedisRestStore({ url: "http://localhost", token: "any" }) });
  const before = metrics();
  await limitFetch({ limit, key: () => "key" })(new Request("http://localhost/"));
  assert.notEqual(metrics(), before);
});
