// Which of the two WebAssembly modules is there when, and for whom.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { bundleWorker } from "../workerd.mjs";
import { directory, execute } from "./project.mjs";

const adapter = "{ get: () => null, compareAndSet: () => true }";
const limit = '{ limit: 1, window: "1s" }';

test("a module is compiled when it is first needed, and once", () => {
  const source = `
    let compiled = 0;
    WebAssembly.Module = class extends WebAssembly.Module {
      constructor(bytes) {
        super(bytes);
        compiled += 1;
      }
    };
    const told = [];
    const tell = () => told.push(compiled);
    const { Limiter, storeFrom } = await import("tidegate");
    tell();
    for (let i = 0; i < 2; i += 1) await new Limiter({ limit: ${limit} }).consume("key");
    tell();
    for (let i = 0; i < 2; i += 1) storeFrom(${adapter});
    tell();
    console.log(told.join());
  `;
  const args = ["--input-type=module", "-e", source];
  assert.equal(execute(process.execPath, args, import.meta.dirname).trim(), "0,1,2");
});

const workers = {
  Limiter: { uses: `new Limiter({ limit: ${limit} })`, modules: 1 },
  storeFrom: { uses: `storeFrom(${adapter})`, modules: 2 },
};

for (const [name, { uses, modules }] of Object.entries(workers)) {
  test(`a Worker with ${name} uploads ${modules} of them`, async (t) => {
    const output = directory(t, {});
    const source = `import { ${name} } from "tidegate"; export default { made: ${uses} };`;
    await bundleWorker(source, import.meta.dirname, output);
    const uploaded = readdirSync(output).filter((file) => file.endsWith(".wasm"));
    assert.equal(uploaded.length, modules, uploaded.join());
  });
}
