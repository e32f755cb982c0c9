// The shared decision vectors over HTTP, every field of every decision, at the times that they name.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve } from "./served.mjs";

const vectors = join(import.meta.dirname, "../vectors/decisions.json");
const { sequences } = JSON.parse(readFileSync(vectors, "utf8"));

let worker;

before(async () => {
  worker = await serve({ clock: true });
});

after(() => worker.stop());

/** Steps of one time travel together. */
function* moments(steps) {
  for (let from = 0, to = 1; to <= steps.length; to += 1) {
    if (steps[to]?.at === steps[from].at) continue;
    yield steps.slice(from, to);
    from = to;
  }
}

test("there are sequences", () => assert.ok(sequences.length >= 60));

for (const [number, { limits: limit, steps }] of sequences.entries()) {
  test(`sequence ${number}`, async () => {
    for (const moment of moments(steps)) {
      await worker.setClock(moment[0].at);
      const calls = moment.map(({ op, cost }) => ({ path: op, key: `${number}`, cost, limit }));
      const { results } = await worker.ok("batch", { calls });
      const decisions = results.map(({ body: { local, dryRun, ...decision } }) => decision);
      assert.deepEqual(
        decisions,
        moment.map(({ expect }) => expect),
      );
    }
  });
}
