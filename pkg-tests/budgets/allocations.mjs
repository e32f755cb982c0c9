// Bytes of the heap that one call takes, as JSON: run with --expose-gc and room for all of it between two collections.
// The clock is a constant, because Date.now() itself makes a number of 16 bytes.

import { Limiter, MemoryStore } from "tidegate";

const CALLS = 20_000;
const WARM_UPS = 20;

const limiter = new Limiter({
  limit: { limit: 10_000_000, window: "1h" },
  store: new MemoryStore({ now: () => 1_790_000_000_000 }),
});
const handle = limiter.handle("user:1");
let admitted = 0;

const loops = {
  "handle.tryConsume": () => {
    for (let call = 0; call < CALLS; call += 1) if (handle.tryConsume()) admitted += 1;
  },
  "handle.consume": () => {
    for (let call = 0; call < CALLS; call += 1) if (handle.consume().allowed) admitted += 1;
  },
  consumeSync: () => {
    for (let call = 0; call < CALLS; call += 1)
      if (limiter.consumeSync("user:1").allowed) admitted += 1;
  },
};

function bytesPerCall(loop) {
  for (let round = 0; round < WARM_UPS; round += 1) loop();
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  loop();
  return (process.memoryUsage().heapUsed - before) / CALLS;
}

const bytes = Object.entries(loops).map(([name, loop]) => [name, bytesPerCall(loop)]);
if (admitted !== bytes.length * (WARM_UPS + 1) * CALLS)
  throw new Error(`${admitted} were admitted`);
console.log(JSON.stringify(Object.fromEntries(bytes)));
