// What a key takes: bytes of the heap and beside it (where WebAssembly memory counts too), with 300 000 keys
// in the process and nothing else. A string belongs to whoever keeps it, as when it came with a request.

import { keepers } from "./contestants.mjs";

const KEYS = 300_000;

function used() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const call = keepers[process.argv[2]]();
await call("warm-up");
const before = used();
for (let key = 0; key < KEYS; key += 1) await call(`user:${key}`);
const bytes = (used() - before) / KEYS;
// Still in use, so that none of it was garbage.
await call("user:0");
console.log(JSON.stringify(bytes));
