import assert from "node:assert/strict";
import { test } from "node:test";
import { createGateway } from "tidegate/socket.io";
import { start, until } from "./harness.mjs";

/** The store of somebody's Arkos gateway, on a clock that stands still. */
class HostStore {
  now = Date.now();
  counts = new Map();
  ids = new Map();

  async increment(key, windowMs) {
    const known = this.counts.get(key);
    const live = known !== undefined && known.resetAt > this.now;
    const next = live
      ? { ...known, count: known.count + 1 }
      : { count: 1, resetAt: Date.now() + windowMs };
    this.counts.set(key, next);
    return next;
  }

  async clear() {}

  async has(key) {
    return this.ids.has(key);
  }

  async set(key, ttl) {
    this.ids.set(key, ttl);
  }

  async setIfNotExists(key, ttl) {
    if (this.ids.has(key)) return false;
    this.ids.set(key, ttl);
    return true;
  }
}

const limit = { algorithm: "fixed-window", limit: 3, window: "1m" };
const events = { order: { limit, dedup: { ttl: "1h" } } };

test("the store of an Arkos gateway limits, and tells duplicates", async (t) => {
  const orders = [];
  for (const [acks, duplicate] of [
    ["tidegate", { ok: true, duplicate: true }],
    ["arkos", { success: true, duplicate: true }],
  ]) {
    const store = new HostStore();
    const { connect } = await start(
      t,
      { acks, events },
      {
        overrides: { store },
        onConnection: (socket, gateway) => {
          gateway.on(socket, "order", async (order) => {
            orders.push(order._meta.mid);
            if (order.fails) throw new Error("failed");
            return { success: true };
          });
        },
      },
    );
    const client = await connect();
    const send = (mid, more) => client.emitWithAck("order", { _meta: { mid }, ...more });
    orders.length = 0;
    assert.deepEqual(await send("a"), { success: true });
    assert.deepEqual(await send("a"), duplicate);
    // What it has let through it cannot forget, not even when the handler fails.
    const failed = await send("b", { fails: true });
    assert.ok(
      acks === "arkos"
        ? failed.error === "Internal server error"
        : failed.error.code === "HANDLER_FAILED",
    );
    // Over the limit: what is done is told to be done, and what is refused is not remembered.
    assert.deepEqual(await send("b"), duplicate);
    const refused = await send("c");
    const retryAfterMs = refused.retryAfter ?? refused.error.retryAfterMs;
    assert.ok(retryAfterMs > 0 && retryAfterMs <= 60_000);
    assert.equal(store.ids.size, 2);
    assert.deepEqual([...store.ids.values()], [3_600, 3_600]);
    store.counts.clear();
    assert.deepEqual(await send("c"), { success: true });
    assert.deepEqual(orders, ["a", "b", "c"]);
  }
});

test("it does what it can while it fails", async (t) => {
  for (const [onStoreError, ok] of [
    ["deny", false],
    ["allow", true],
    ["local", true],
  ]) {
    const failing = new HostStore();
    failing.increment = async () => {
      throw new Error("down");
    };
    failing.setIfNotExists = failing.increment;
    const { connect } = await start(
      t,
      { store: failing, timeout: 50, onStoreError, events },
      {
        onConnection: (socket) => socket.on("order", (_, acknowledge) => acknowledge({ ok: true })),
      },
    );
    const client = await connect();
    assert.equal((await client.emitWithAck("order", { mid: "a" })).ok, ok, onStoreError);
  }
});

test("what it cannot do is refused: at once where that can be known, else the packet", async (t) => {
  const store = new HostStore();
  for (const rule of [
    { limit: { limit: 3, window: "1m" } },
    { limit: [limit, { ...limit, name: "second" }] },
    { limit, cost: 2 },
  ]) {
    assert.throws(() => createGateway({ store, events: { order: rule } }), { code: "unsupported" });
  }
  const errors = [];
  const { connect } = await start(
    t,
    { store, events: { order: { limit, cost: ([units]) => units } } },
    {
      onConnection: (socket) => {
        socket.on("error", (error) => errors.push(error.code));
        socket.on("order", (_, acknowledge) => acknowledge({ ok: true }));
      },
    },
  );
  const client = await connect();
  assert.equal((await client.emitWithAck("order", 1)).ok, true);
  assert.equal((await client.emitWithAck("order", 2)).error.code, "STORE_UNAVAILABLE");
  await until(() => errors.length === 1);
  assert.deepEqual(errors, ["unsupported"]);
});
