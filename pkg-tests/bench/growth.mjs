// What a decision costs with so many keys, called in random order: `growth.mjs WHO KEYS`, in a process of its own,
// writes nanoseconds as JSON.

import { clockAndFetch, consumeSync, handles, mapCounter, PLENTY } from "./contestants.mjs";
import { keysOf, median, shuffledKeysOf } from "./measure.mjs";

export const growers = {
  "Date.now() and one row fetched": clockAndFetch,
  "handle.tryConsume": handles,
  consumeSync,
  "Map counter by hand": mapCounter,
};
export const keyCounts = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

const ROUNDS = 5;
const CALLS = 400_000;

function measure(who, keyCount) {
  const contestant = growers[who](PLENTY, Math.max(keyCount, 1_000_000));
  contestant(keysOf(keyCount))();
  const pass = contestant(shuffledKeysOf(keyCount));
  const passes = Math.ceil(CALLS / keyCount);
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    globalThis.gc();
    const start = process.cpuUsage();
    for (let done = 0; done < passes; done += 1) pass();
    const { user, system } = process.cpuUsage(start);
    return ((user + system) * 1000) / (passes * keyCount);
  });
  return median(rounds.slice(1));
}

if (import.meta.filename === process.argv[1]) {
  console.log(JSON.stringify(measure(process.argv[2], Number(process.argv[3]))));
}
