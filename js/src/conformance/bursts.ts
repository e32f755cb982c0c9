import type { BurstDetector, BurstDetectorOptions } from "../burst-detector.js";
import type { Observation } from "../store.js";
import { fields, same, Unexpected, within } from "./expect.js";
import type { Case, Need, Trial } from "./trial.js";

const NEEDS: readonly Need[] = ["exact", "records"];
/** How much of a window has to be left for a case to run within it. */
const ENOUGH_MS = 60_000;

type Policy = Pick<BurstDetectorOptions, "threshold" | "trigger" | "cooldown">;

/** What burst alarms owe, whatever the clock does. */
export const burstCases: readonly Case[] = [
  { name: "an alarm fires once, at its threshold", needs: NEEDS, body: firesOnce },
  { name: "a sliding alarm fires once, at its threshold", needs: NEEDS, body: slidingFiresOnce },
  { name: "an observation may stand for several", needs: NEEDS, body: weights },
  {
    name: "a retry with the firing's nonce is told again that it fired",
    needs: NEEDS,
    body: nonces,
  },
  { name: "detectors of one prefix share their counts", needs: NEEDS, body: sharedCounts },
];

/**
 * A detector whose window is not about to end. Windows are aligned to the epoch, so that one of another
 * length ends at another time.
 */
export async function insideWindow(trial: Trial, policy: Policy): Promise<BurstDetector> {
  let observation: Observation | undefined;
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const window = trial.longMs + attempt * 997_001;
    const detector = trial.detector({ ...policy, window });
    observation = await detector.observe(`window of ${window} ms`);
    if (observation.windowEndsInMs > ENOUGH_MS) return detector;
  }
  throw new Unexpected("one of ten windows", "more than a minute until its end", observation);
}

async function firesOnce(trial: Trial): Promise<void> {
  await countsTo(await insideWindow(trial, { threshold: 3 }), 2 * trial.longMs);
}

async function slidingFiresOnce(trial: Trial): Promise<void> {
  await countsTo(await insideWindow(trial, { threshold: 3, trigger: "sliding" }), 4 * trial.longMs);
}

async function countsTo(detector: BurstDetector, mostMs: number): Promise<void> {
  for (const identity of ["one", "other"]) {
    for (let count = 1; count <= 6; count += 1) {
      const observation = await detector.observe(identity);
      const expected = { count, fired: count === 3, replay: false };
      fields(observation, expected, `observation ${count} of "${identity}"`);
      within(observation.windowEndsInMs, 1, mostMs, "windowEndsInMs");
    }
  }
}

async function weights(trial: Trial): Promise<void> {
  const detector = await insideWindow(trial, { threshold: 10 });
  const steps: [number, Record<string, unknown>][] = [
    [4, { count: 4, fired: false }],
    [5, { count: 9, fired: false }],
    [7, { count: 16, fired: true }],
    [10, { count: 26, fired: false }],
  ];
  for (const [weight, expected] of steps) {
    fields(await detector.observe("one", { weight }), expected, `a weight of ${weight}`);
  }
  fields(await detector.observe("at once", { weight: 50 }), { fired: true }, "a weight above all");
}

async function nonces(trial: Trial): Promise<void> {
  const detector = await insideWindow(trial, { threshold: 2 });
  fields(await detector.observe("one", { nonce: "a" }), { count: 1, fired: false }, "the first");
  const fired = { count: 2, fired: true, replay: false };
  fields(await detector.observe("one", { nonce: "\ud800 b:" }), fired, "the one that fires");
  const again = { count: 2, fired: true, replay: true };
  for (let i = 0; i < 3; i += 1) {
    fields(await detector.observe("one", { nonce: "\ud800 b:" }), again, "its retry");
  }
  const other = { count: 3, fired: false, replay: false };
  fields(await detector.observe("one", { nonce: "\ud801 b:" }), other, "another nonce");
  fields(await detector.observe("one"), { count: 4, fired: false, replay: false }, "no nonce");
  fields(await detector.observe("two", { nonce: "\ud800 b:" }), { count: 1 }, "another identity");
}

async function sharedCounts(trial: Trial): Promise<void> {
  const one = trial.detector({ threshold: 1_000, window: 365 * 86_400_000, trigger: "sliding" });
  const two = trial.detector({ threshold: 3, window: 365 * 86_400_000, trigger: "sliding" });
  await one.observe("identity");
  await one.observe("identity");
  fields(await two.observe("identity"), { count: 3, fired: true }, "at another detector");
  const secret = trial.detector({
    ...{ threshold: 3, window: 365 * 86_400_000, trigger: "sliding", secret: "secret" },
  });
  same((await secret.observe("identity")).count, 1, "the count under a secret");
}
