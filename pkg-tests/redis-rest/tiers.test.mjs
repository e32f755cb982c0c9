// Two tiers over Redis over fetch.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Deduplicator, TieredStore } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisRestStore } from "tidegate/redis-rest";
import { calls, fleetOf } from "../tiers/shared.mjs";
import { TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

let served;
let prefixes = 0;
before(async () => {
  served = await serve();
});
after(() => served.stop());

const made = () =>
  new RedisRestStore({ url: served.proxy.url, token: TOKEN, prefix: `tiers${prefixes++}` });

describe("deny-cache", () => {
  storeConformance(test, () => new TieredStore({ l2: made() }));
});

for (const mode of ["deny-cache", "lease", "eager"]) {
  for (const algorithm of ["leaky-bucket", "fixed-window", "sliding-window"]) {
    test(`${mode}, ${algorithm}: four nodes stay within the bound, and close settles`, async () => {
      const limit = { limit: 160, window: "1h", algorithm };
      const { nodes, limiters, used } = fleetOf(mode, 4, made(), limit, { maxUnsynced: 4 });
      const called = async (each) => {
        const told = limiters.map((limiter) => calls(each, () => limiter, "key"));
        return (await Promise.all(told)).reduce((sum, { admitted }) => sum + admitted, 0);
      };
      const few = await called(20);
      await Promise.all(nodes.map((node) => node.close()));
      const known = await used("key");
      assert.ok(few === 80 && Math.abs(known - few) <= 1, `${known} of ${few}`);
      const admitted = few + (await called(40));
      const bound = nodes[0].overAdmissionBound(limit, 4);
      assert.ok(admitted > 150 && admitted <= 160 + bound + 1, `${admitted}, bound ${bound}`);
      await Promise.all(nodes.map((node) => node.close()));
    });
  }

  test(`${mode}: a block, a reset and a refund of this node's own hold at once`, async () => {
    const limit = { limit: 100, window: "1h", algorithm: "fixed-window" };
    const { nodes, limiters } = fleetOf(mode, 1, made(), limit);
    const [limiter] = limiters;
    await calls(20, () => limiter, "key");
    await limiter.block("key", "1h");
    assert.equal((await limiter.consume("key")).reason, "blocked");
    await limiter.unblock("key");
    await limiter.refund("key", 5);
    assert.equal((await limiter.consume("key")).allowed, true);
    await limiter.reset("key");
    assert.equal((await limiter.consume("key")).remaining, 99);
    await nodes[0].close();
  });

  test(`${mode}: an id is new once`, async () => {
    const store = made();
    const dedups = [1, 2].map(
      () => new Deduplicator({ ttl: "1h", store: new TieredStore({ l2: store, mode }) }),
    );
    const firsts = await Promise.all([0, 1, 0, 1].map((at) => dedups[at].first("id")));
    assert.equal(firsts.filter(Boolean).length, 1);
  });
}
