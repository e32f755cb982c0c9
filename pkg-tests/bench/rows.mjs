// The rows of the table: what is measured, beside whom. The first contestant of a row is tidegate's; where both are,
// it is the one without tiers.

import * as those from "./contestants.mjs";
import { keysOf, shuffledKeysOf } from "./measure.mjs";

const { PLENTY, ROOMY } = those;
const ONE = 1;

const handles = ["handle.tryConsume", those.handles];
const consumeSync = ["consumeSync", those.consumeSync];
const consume = ["await consume", those.consume];
const tiered = (mode) => [`${mode}, awaited`, those.tiered(mode)];
const inMemory = ["MemoryStore, awaited", those.consume];
const clock = ["Date.now() alone", those.clock];
const map = ["Map counter by hand", those.mapCounter];
const flexible = ["rate-limiter-flexible, awaited", those.flexible];
const limiter = ["limiter, in a Map", those.limiterPackage];
const express = ["express-rate-limit's MemoryStore, awaited", those.expressStore];

/** Calls in random order on keys that are there: all of them admitted, or all of them denied. */
function known(keyCount, calls, limit, contestants) {
  return {
    calls,
    admitted: limit === ONE ? 0 : calls,
    contestants: contestants.map(([name, make]) => {
      const contestant = make(limit);
      const there = contestant(keysOf(keyCount))();
      const pass = contestant(shuffledKeysOf(keyCount));
      const run = async () => {
        let admitted = 0;
        for (let done = 0; done < calls; done += keyCount) admitted += await pass();
        return admitted;
      };
      return { name, ready: there, prepare: () => run };
    }),
  };
}

/** Calls on keys that nobody has seen, all of them admitted. */
function fresh(keyCount, contestants) {
  return {
    calls: keyCount,
    admitted: keyCount,
    contestants: contestants.map(([name, make]) => {
      const contestant = make(PLENTY);
      return { name, prepare: (round) => contestant(keysOf(keyCount, round * keyCount)) };
    }),
  };
}

export const rows = {
  "handle.tryConsume, 1 000 keys": () =>
    known(1_000, 400_000, PLENTY, [handles, clock, map, flexible]),
  "handle.tryConsume, 100 000 keys": () =>
    known(100_000, 400_000, PLENTY, [handles, clock, map, flexible]),
  "handle.tryConsume, 1 000 000 keys": () =>
    known(1_000_000, 1_000_000, PLENTY, [handles, clock, map]),
  "consumeSync, 1 000 keys": () =>
    known(1_000, 400_000, PLENTY, [consumeSync, map, limiter, express]),
  "consumeSync, 100 000 keys": () =>
    known(100_000, 400_000, PLENTY, [consumeSync, map, limiter, express]),
  "await consume, 1 000 keys": () => known(1_000, 400_000, PLENTY, [consume, flexible, express]),
  "await consume, 100 000 keys": () =>
    known(100_000, 400_000, PLENTY, [consume, flexible, express]),
  "denied: handle.tryConsume, 100 000 keys": () =>
    known(100_000, 400_000, ONE, [handles, clock, map, flexible]),
  "denied: consumeSync, 100 000 keys": () =>
    known(100_000, 400_000, ONE, [consumeSync, map, limiter, express]),
  "denied: await consume, 100 000 keys": () => known(100_000, 400_000, ONE, [consume, flexible]),
  "tiers: lease, 100 keys": () => known(100, 400_000, ROOMY, [inMemory, tiered("lease")]),
  "tiers: eager, maxUnsynced 10, 100 keys": () =>
    known(100, 400_000, ROOMY, [inMemory, tiered("eager")]),
  "tiers: denied in deny-cache, 100 keys": () =>
    known(100, 400_000, ONE, [inMemory, tiered("deny-cache")]),
  "first call of a new key: consumeSync": () =>
    fresh(50_000, [consumeSync, map, limiter, flexible]),
  "first call of a new key: handle and tryConsume": () =>
    fresh(50_000, [["handle.tryConsume", those.freshHandles], map, flexible]),
  "Deduplicator.first, new ids": () =>
    fresh(50_000, [
      ["await first", those.first],
      ["Map of timers by hand", those.mapOfTimers],
    ]),
};
