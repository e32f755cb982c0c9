/** The suite that the author of a store runs, in any test runner. It depends on nothing. */

import { burstCases } from "./conformance/bursts.js";
import { keyCases } from "./conformance/keys.js";
import { limitCases } from "./conformance/limits.js";
import { messageCases } from "./conformance/messages.js";
import { promiseCases } from "./conformance/promises.js";
import { raceCases } from "./conformance/races.js";
import { timeCases } from "./conformance/time.js";
import { type Case, type ConformanceOptions, ends, Trial } from "./conformance/trial.js";
import type { Store } from "./store.js";

export type { ConformanceOptions };

const CASES: readonly Case[] = [
  ...promiseCases,
  ...limitCases,
  ...keyCases,
  ...messageCases,
  ...burstCases,
  ...raceCases,
  ...timeCases,
];

/** A store may be far away, but a case that waits for what never comes has to fail. */
const LONGEST_CASE_MS = 20_000;

/**
 * Registers the cases that every store has to pass. They follow its capabilities: what it does not promise
 * is left out, and that it is refused is a case of its own. Each case makes its own store, uses keys that
 * nobody else uses, and closes the store.
 *
 * @example
 * import { test } from "node:test";
 * storeConformance(test, () => storeFrom(myAdapter));
 */
export function storeConformance(
  test: (name: string, body: () => Promise<void>) => void,
  makeStore: () => Promise<Store> | Store,
  options: ConformanceOptions = {},
): void {
  for (const { name, needs, body } of CASES) {
    if (needs.includes("advance") && options.advance === undefined) continue;
    if (needs.includes("wait") && options.advance !== undefined) continue;
    if (needs.includes("size") && options.size === undefined) continue;
    test(name, async () => {
      const trial = new Trial(await makeStore(), options);
      try {
        if (needs.every((need) => trial.has(need)))
          await ends(body(trial), LONGEST_CASE_MS, "the case");
      } finally {
        await trial.close();
      }
    });
  }
}
