// What holds over a fleet of three processes, whichever adapter joins their rooms.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { until } from "../gateway/harness.mjs";
import { as, Fleet, move } from "./fleet.mjs";

const MESSAGES = 50;

/** The cases, with one of Socket.IO's adapters. */
export function fleetCases(adapter) {
  describe(`three processes on one Redis, with the ${adapter} adapter`, () => {
    let fleet;
    before(async () => {
      fleet = await Fleet.start(adapter);
    });
    after(() => fleet.stop());
    const everywhere = (options, namespace) =>
      Promise.all(fleet.urls.map((_, node) => fleet.client(node, options, namespace)));

    test("copies that reach all nodes at once are handled once, and all get one acknowledgement", async () => {
      const clients = await everywhere(as("copies"));
      const seen = clients.map((client) => {
        const mids = [];
        client.on("ordered", (mid) => mids.push(mid));
        return mids;
      });
      const mids = Array.from({ length: MESSAGES }, (_, at) => `copies-${at}`);
      await Promise.all(
        mids.map(async (mid) => {
          const answers = await Promise.all(clients.map((c) => c.emitWithAck("order", { mid })));
          assert.equal(answers[0].mid, mid);
          assert.deepEqual(answers, [answers[0], answers[0], answers[0]]);
        }),
      );
      assert.deepEqual(
        await fleet.handled((entry) => entry.includes("copies-")),
        mids.map((mid) => `/ ${mid}`).sort(),
      );
      // The adapter carries the rooms as ever.
      await until(() => seen.every(({ length }) => length >= MESSAGES));
      for (const each of seen) assert.deepEqual(each.sort(), mids.toSorted());
    });

    test("a client's own retries that land on another node run nothing twice", async () => {
      const client = await fleet.client(0, { ...as("retries"), retries: 5, ackTimeout: 2_000 });
      const answered = client.emitWithAck("order", { mid: "retries-1", takesMs: 400 });
      const begun = async () => (await fleet.book.lrange("begun", 0, -1)).includes("retries-1");
      await until(begun);
      await move(client, fleet.urls[1]);
      assert.equal((await answered).mid, "retries-1");
      assert.deepEqual(await fleet.handled((entry) => entry.endsWith(" retries-1")), [
        "/ retries-1",
      ]);
    });

    test("a budget is one over all nodes, and a reconnection buys no other", async () => {
      const client = await fleet.client(0, as("budget"));
      const codes = [];
      for (let sent = 0; sent < 7; sent += 1) {
        const { error } = await client.emitWithAck("chat");
        codes.push(error?.code);
        await move(client, fleet.urls[(sent + 1) % 3]);
      }
      assert.deepEqual(codes, [...Array(5).fill(undefined), "RATE_LIMITED", "RATE_LIMITED"]);
    });

    test("an alarm goes off once, wherever the traffic arrives", async () => {
      const clients = await everywhere({ auth: { isFlooder: true } });
      const flood = () =>
        Promise.all(
          clients.flatMap((c) => Array.from({ length: 10 }, () => c.emitWithAck("chat"))),
        );
      await flood();
      await until(() => fleet.book.llen("bursts"));
      await flood();
      assert.equal(await fleet.book.llen("bursts"), 1);
    });

    test("namespaces have budgets and ids of their own, over all nodes", async () => {
      const [root] = await everywhere(as("namespaces"));
      const admins = await everywhere(as("namespaces"), "/admin");
      await Promise.all([root, ...admins].map((c) => c.emitWithAck("order", { mid: "spaces-1" })));
      const handled = await fleet.handled((entry) => entry.endsWith("spaces-1"));
      assert.deepEqual(handled, ["/ spaces-1", "/admin spaces-1"]);
      const chat = async (client) => (await client.emitWithAck("chat")).error?.code;
      for (let sent = 0; sent < 5; sent += 1) assert.equal(await chat(root), undefined);
      assert.equal(await chat(root), "RATE_LIMITED");
      assert.equal(await chat(admins[2]), undefined);
    });
  });
}
