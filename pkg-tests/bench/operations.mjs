// How often each mode of tiers asks the store that is shared, and writes it as JSON: calls one after the other, on keys
// that take turns.

import { Limiter, storeFrom, TieredStore } from "../../js/dist/node/index.js";
import { ROOMY } from "./contestants.mjs";
import { shuffledKeysOf } from "./measure.mjs";

const KEYS = 100;
const MEASURED_MS = 2_000;

async function measure(name, mode, limit) {
  const rows = new Map();
  let operations = 0;
  const l2 = storeFrom({
    get(key) {
      operations += 1;
      return rows.get(key) ?? null;
    },
    compareAndSet(key, _expected, next) {
      rows.set(key, next);
      return true;
    },
  });
  const limiter = new Limiter({
    limit: { limit, window: "20d" },
    store: new TieredStore({ l2, mode }),
  });
  const keys = shuffledKeysOf(KEYS);
  const pass = async () => {
    let local = 0;
    for (const key of keys) if ((await limiter.consume(key)).local) local += 1;
    return local;
  };
  await pass();
  await pass();
  operations = 0;
  let [passes, local] = [0, 0];
  const end = performance.now() + MEASURED_MS;
  for (; performance.now() < end; passes += 1) local += await pass();
  const calls = passes * KEYS;
  return { name, calls, local: local / calls, operations };
}

console.log(
  JSON.stringify([
    await measure("lease, steady load", "lease", ROOMY),
    await measure("eager, steady load", "eager", ROOMY),
    await measure("deny-cache, all denied", "deny-cache", 1),
  ]),
);
process.exit();
