// Measures contestants in turn, round after round, in one process: what slows the machine down for a
// moment slows them all down. Time is the processor time of the process with all its threads, garbage
// collection included, so that other work on the machine counts as little as possible.

import { setTimeout } from "node:timers/promises";

const ROUNDS = 7;
const WARM_UPS = 2;
const SWEEP_MS = 100;

/** Keys as users have them, strings of their own each time, as they come with requests. */
export function keysOf(count, first = 0) {
  return Array.from({ length: count }, (_, index) => `user:${first + index}`);
}

/** The same, in an order that no cache foresees but that is the same in every run. */
export function shuffledKeysOf(count) {
  const keys = keysOf(count);
  let state = 0x2545f491;
  for (let at = count - 1; at > 0; at -= 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const other = (state >>> 0) % (at + 1);
    [keys[at], keys[other]] = [keys[other], keys[at]];
  }
  return keys;
}

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/**
 * Medians of nanoseconds per call, and of each round's ratio to the first contestant. `run` is asked
 * for each round's run, outside of what is timed.
 */
export async function compare({ contestants, calls, admitted: expected }) {
  const times = contestants.map(() => []);
  for (const { ready } of contestants) await ready;
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    for (const [index, { name, prepare }] of contestants.entries()) {
      const run = prepare(round + WARM_UPS);
      globalThis.gc();
      // What was collected is swept by other threads, whose time would count as the contestant's.
      await setTimeout(SWEEP_MS);
      const start = process.cpuUsage();
      const answer = run();
      const admitted = answer instanceof Promise ? await answer : answer;
      const { user, system } = process.cpuUsage(start);
      const ns = ((user + system) * 1000) / calls;
      if (admitted !== expected && index === 0) {
        throw new Error(`${name} admitted ${admitted} of ${calls} calls in round ${round}`);
      }
      if (round >= 0) times[index].push(ns);
    }
  }
  return contestants.map(({ name }, index) => ({
    name,
    ns: median(times[index]),
    ratio: median(times[index].map((ns, round) => ns / times[0][round])),
  }));
}
