// One sender of a bounded store fills at most a hundredth of its ids, and gives up its own oldest finished ones first.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore } from "tidegate";
import { believe, start } from "./harness.mjs";

const dedup = { ttl: "1h" };

for (const length of [1, 300]) {
  test(`a flood of ids forgets the flooder's own alone (ids of ${length} characters and more)`, async (t) => {
    const store = new MemoryStore({ maxKeys: 500 });
    const handled = [];
    const { connect } = await start(
      t,
      { store, events: { order: { dedup } } },
      {
        early: believe,
        onConnection(socket) {
          socket.on("order", ({ mid }, acknowledge) => {
            handled.push(mid);
            acknowledge({ mid });
          });
        },
      },
    );
    const flooder = await connect({ auth: { user: "flooder" } });
    const other = await connect({ auth: { user: "other" } });
    const mid = (n) => `${n}${"x".repeat(length)}`;
    const order = (client, n) => client.timeout(5_000).emitWithAck("order", { mid: mid(n) });

    await order(other, 1);
    for (let n = 0; n < 100; n += 1) await order(flooder, n);
    assert.ok(store.size <= 6, `${store.size} ids: five of the flooder's and the other's`);
    handled.length = 0;
    await order(other, 1);
    await order(flooder, 99);
    await order(flooder, 95);
    assert.deepEqual(handled, [], "the newest and everybody else's are remembered");
    await order(flooder, 0);
    assert.deepEqual(handled, [mid(0)], "its oldest is not");
  });
}

test("a sender whose messages are all under way is told to wait, and nobody else", async (t) => {
  const store = new MemoryStore({ maxKeys: 200 });
  const waiting = [];
  const { connect } = await start(
    t,
    { store, events: { order: { dedup } } },
    {
      early: believe,
      onConnection(socket) {
        socket.on("order", (order, acknowledge) => {
          if (order.hold) waiting.push(acknowledge);
          else acknowledge({ ok: true });
        });
      },
    },
  );
  const busy = await connect({ auth: { user: "busy" } });
  const other = await connect({ auth: { user: "other" } });
  const held = [1, 2].map((mid) => busy.timeout(5_000).emitWithAck("order", { mid, hold: true }));
  const refused = await busy.timeout(5_000).emitWithAck("order", { mid: 3 });
  assert.equal(refused.error.code, "STORE_UNAVAILABLE");
  assert.deepEqual(await other.timeout(5_000).emitWithAck("order", { mid: 3 }), { ok: true });
  for (const acknowledge of waiting) acknowledge({ ok: true });
  await Promise.all(held);
  assert.deepEqual(await busy.timeout(5_000).emitWithAck("order", { mid: 3 }), { ok: true });
});
