// The hot path makes no garbage: nothing on a handle's tryConsume, one decision where one is answered.

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { run } from "../../js/tools/shell.mjs";

/** An object of nine fields behind a header of three words. */
const DECISION = 12 * 8;
/** What the measuring itself takes, spread over the calls. */
const SLACK = 4;

const budgets = {
  "handle.tryConsume": 0,
  "handle.consume": DECISION,
  consumeSync: DECISION,
};

describe("bytes of the heap per call", () => {
  let bytes;

  before(async () => {
    const flags = ["--expose-gc", "--max-semi-space-size=64"];
    const script = join(import.meta.dirname, "allocations.mjs");
    bytes = JSON.parse(await run(process.execPath, [...flags, script]));
  });

  for (const [name, budget] of Object.entries(budgets)) {
    test(name, () => {
      assert.ok(bytes[name] <= budget + SLACK, `${bytes[name]} bytes; ${budget} may be`);
    });
  }
});
