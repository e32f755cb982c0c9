// A gateway that closes has decided on what came before it, refuses what comes after it, and runs nothing twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { MemoryStore, TieredStore } from "tidegate";
import { createGateway } from "tidegate/socket.io";
import { as, believe, Database, gate, refusedBy, Server, start, until } from "./harness.mjs";

const limit = { limit: 1_000, window: "1h" };
const codes = (acks) => acks.map((ack) => ack.error?.code ?? ack);
const UNAVAILABLE = "STORE_UNAVAILABLE";
/** Resolves when all that was sent before has been received: what has no rule waits for nobody. */
const received = (client) => client.emitWithAck("received");
const receiving = (socket) => socket.on("received", (acknowledge) => acknowledge("received"));

test("a copy that waits for another process is refused, whatever a failed store means", async (t) => {
  for (const onStoreError of ["allow", "deny", "local"]) {
    const store = new Database().store();
    const { opened, open } = gate();
    t.after(open);
    const runs = [];
    const handling = (name) => ({
      before: believe,
      onConnection: (socket, gateway) => {
        gateway.on(socket, "order", async () => {
          runs.push(name);
          if (name === "here") await opened;
          return name;
        });
        receiving(socket);
      },
    });
    const options = { store, onStoreError, events: { order: { dedup: {} } } };
    const here = await start(t, options, handling("here"));
    const there = await start(t, options, handling("there"));
    const first = (await here.connect(as("ann"))).emitWithAck("order", { mid: "a" });
    await until(() => runs.length === 1);
    const client = await there.connect(as("ann"));
    const copy = client.emitWithAck("order", { mid: "a" });
    await received(client);
    await there.gateway.close();
    assert.deepEqual(codes([await copy]), [UNAVAILABLE], onStoreError);
    open();
    assert.deepEqual([await first, runs], ["here", ["here"]], onStoreError);
  }
});

test("who comes to a closed gateway is refused, whatever a failed store means", async (t) => {
  const { gateway, dial } = await start(t, {
    store: new Database().store(),
    onStoreError: "allow",
    connect: { limit },
  });
  await gateway.close();
  assert.equal((await refusedBy(dial())).data.code, UNAVAILABLE);
});

test("whoever closes it, and however often, hears when it is closed", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  const { gateway, connect } = await start(
    t,
    { store: database.store(), timeout: "10s", events: { order: { dedup: {} } } },
    {
      onConnection: (socket, gateway) =>
        gateway.on(socket, "order", () => {
          database.before = () => opened;
          return "done";
        }),
    },
  );
  const ack = (await connect()).emitWithAck("order", { mid: "a" });
  await until(() => database.before() !== undefined);
  let closed = 0;
  const closing = [gateway.close(), gateway.close()].map(async (closing) => {
    await closing;
    closed += 1;
  });
  await pause(20);
  assert.equal(closed, 0);
  open();
  await Promise.race([
    Promise.all(closing),
    pause(2_000).then(() => assert.fail(`${closed} closed`)),
  ]);
  assert.equal(await ack, "done");
});

test("what came before is decided on, in order; what comes after is refused", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  const handled = [];
  let arrived = 0;
  const { gateway, connect } = await start(
    t,
    { store: database.store(), timeout: "3s", events: { order: { limit, dedup: {} } } },
    {
      onConnection: (socket, gateway) => {
        socket.conn.on("data", () => {
          arrived += 1;
        });
        gateway.on(socket, "order", async ({ mid }) => {
          await pause(10);
          handled.push(mid);
          return mid;
        });
      },
    },
  );
  const client = await connect();
  database.before = () => opened;
  const before = ["a", "b", "c", "d"].map((mid) => client.emitWithAck("order", { mid }));
  await until(() => arrived === before.length);
  let isClosed = false;
  const closing = gateway.close().then(() => {
    isClosed = true;
  });
  const late = await client.timeout(1_000).emitWithAck("order", { mid: "late" });
  assert.equal(late.error.code, UNAVAILABLE);
  assert.equal(isClosed, false);
  open();
  await closing;
  assert.deepEqual(handled, ["a", "b", "c", "d"]);
  assert.deepEqual(await Promise.all(before), ["a", "b", "c", "d"]);
});

test("a slow store holds the closing up no longer than its deadline", async (t) => {
  const database = new Database();
  const { gateway, connect } = await start(
    t,
    { store: database.store(), timeout: 200, events: { order: { limit } } },
    { onConnection: (socket, gateway) => gateway.on(socket, "order", () => "done") },
  );
  const client = await connect();
  database.before = () => pause(40);
  const orders = Array.from({ length: 50 }, () => client.emitWithAck("order"));
  assert.equal(await orders[0], "done");
  const asked = performance.now();
  await gateway.close();
  const took = performance.now() - asked;
  assert.ok(took < 1_000, `after ${took} ms`);
  const acks = codes(await Promise.all(orders));
  const done = acks.indexOf(UNAVAILABLE);
  assert.ok(done > 1, `${done} of those that came before`);
  assert.deepEqual(new Set(acks.slice(done)), new Set([UNAVAILABLE]));
});

test("SIGTERM is listened for where a registration has a store of its own, until it is closed", async () => {
  const before = process.listenerCount("SIGTERM");
  const gateway = createGateway();
  assert.equal(process.listenerCount("SIGTERM") - before, 0);
  const tiered = () => new TieredStore({ l2: new MemoryStore(), mode: "lease" });
  gateway.register(new Server(), { store: tiered() });
  assert.equal(process.listenerCount("SIGTERM") - before, 1);
  await gateway.close();
  assert.equal(process.listenerCount("SIGTERM") - before, 0);
});
