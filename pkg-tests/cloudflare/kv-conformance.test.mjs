// What a store that is best-effort owes, over a KV that refuses a second write within a second.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { KvStore } from "tidegate/cloudflare";
import { storeConformance } from "tidegate/conformance";
import { FakeKv } from "./fake-kv.mjs";
import { Clock } from "./kv-clock.mjs";

const clock = new Clock();
after(() => clock.restore());

let cases = 0;
for (const seesItsWrites of [true, false]) {
  const kv = new FakeKv();
  const named = (name, body) => {
    cases += 1;
    const title = `${name}${seesItsWrites ? "" : ", where KV tells of no write at once"}`;
    // Waits of the suite itself are over at once, as those for KV are.
    test(title, () => clock.until(body()));
  };
  storeConformance(named, () => new KvStore(kv.location({ seesItsWrites })), {
    advance: (ms) => clock.advance(ms),
    size: () => kv.size,
  });
  test("KV refused no write for coming too soon", () => assert.equal(kv.refused, 0));
}

test("the suite is a whole one", () => assert.ok(cases > 2 * 60, `${cases} cases`));
