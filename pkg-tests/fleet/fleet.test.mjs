// Eight processes on one server are as exact as one: what they admit together is what a single limiter would, a burst
// fires once, a message is handled once. TIDEGATE_SOAK makes it long.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Limiter } from "tidegate";
import { KINDS, Server } from "../redis/servers.mjs";

const NODES = 8;
const longer = Number(process.env.TIDEGATE_SOAK ?? 0) > 0 ? 20 : 1;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** A window that began half of itself ago, so that none ends while the fleet is at work. */
const window = Math.floor(Date.now() / 60.5);
const bucket = { limit: 40 * longer, window: "365d" };
const limits = {
  "fixed windows": { algorithm: "fixed-window", limit: 40 * longer, window: "1d" },
  "sliding windows": { algorithm: "sliding-window", limit: 40 * longer, window },
  "leaky buckets, of which nothing drains meanwhile": bucket,
  "two limits at once": [
    { ...bucket, name: "bucket" },
    { name: "window", algorithm: "fixed-window", limit: 30 * longer, window: "1d" },
  ],
};

const nodes = [];
before(async () => {
  for (let at = 0; at < NODES; at += 1) nodes.push(fork(join(import.meta.dirname, "node.mjs")));
  await Promise.all(nodes.map((node) => once(node, "message")));
});
after(() => {
  for (const node of nodes) node.disconnect();
});

for (const kind of KINDS) {
  describe(kind, () => {
    let server;
    before(async () => {
      server = await Server.start([], `${kind}-server`);
    });
    after(() => server.stop());

    /** All nodes at work on the same thing at once; answers what came of it in each. */
    async function together(name, prefix, task) {
      const results = nodes.map(async (node) => (await once(node, "message"))[0]);
      for (const node of nodes) node.send({ name, port: server.port, prefix, task });
      return Promise.all(results);
    }

    for (const [name, limit] of Object.entries(limits)) {
      test(`${name}: 100 keys, admitted exactly as by one limiter`, async () => {
        const costs = Array.from({ length: 100 }, (_, key) => 1 + (key % 3));
        const calls = 10 * longer;
        const admitted = await together("limit", name, { limit, costs, calls });
        const alone = new Limiter({ limit });
        for (const [key, cost] of costs.entries()) {
          let expected = 0;
          for (let call = 0; call < NODES * calls; call += 1) {
            if (alone.consumeSync(`key ${key}`, { cost }).allowed) expected += cost;
          }
          assert.ok(expected < NODES * calls * cost, "the limit is put to the test");
          assert.equal(sum(admitted.map((units) => units[key])), expected, `key ${key}`);
        }
      });
    }

    for (const trigger of ["tumbling", "sliding"]) {
      test(`a burst fires once: ${trigger}`, async () => {
        const reports = 50 * longer;
        const policy = { trigger, window, threshold: (NODES - 1) * reports };
        const fired = await together("burst", trigger, { policy, identities: 20, reports });
        for (let who = 0; who < 20; who += 1) {
          assert.equal(sum(fired.map((counts) => counts[who])), 1, `identity ${who}`);
        }
      });
    }

    const messages = 10_000 * longer;
    test(`${messages} messages, each sent to all: handled once, and answered alike`, async () => {
      const results = await together("messages", "messages", { messages });
      const handled = results.flatMap((result) => result.handled).sort((a, b) => a - b);
      assert.deepEqual(
        handled,
        handled.map((_, id) => id),
      );
      assert.equal(handled.length, messages);
      const [{ answers }] = results;
      for (const result of results) assert.deepEqual(result.answers, answers);
      const handlers = results.filter((result) => result.handled.length > 0);
      assert.ok(handlers.length > 1, "several took part");
    });
  });
}
