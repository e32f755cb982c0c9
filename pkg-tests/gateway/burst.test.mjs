import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { as, believe, Database, refusedBy, start, stillStore, until } from "./harness.mjs";

const answering = (socket) => socket.on("chat", (acknowledge) => acknowledge?.({ ok: true }));

/** Sends one after the other. */
async function send(client, times) {
  for (let at = 0; at < times; at += 1) await client.emitWithAck("chat");
}

test("handshakes and packets of those who are nobody are counted by address, and a burst is told of once", async (t) => {
  const bursts = [];
  const { store, advance } = stillStore();
  const { connect } = await start(
    t,
    { store, burst: { threshold: 10, window: "10s", onBurst: (burst) => bursts.push(burst) } },
    {
      before: (io) => {
        io.on("connection", (socket) => {
          socket.on("login", (user, acknowledge) => {
            socket.data.userId = user;
            acknowledge();
          });
        });
      },
      onConnection: answering,
    },
  );
  const [one, other] = [await connect(), await connect()];
  await send(one, 4);
  await send(other, 3);
  assert.deepEqual(bursts, []);
  await send(other, 1);
  await until(() => bursts.length === 1);
  assert.deepEqual(bursts, [{ identity: "127.0.0.1", count: 10 }]);
  await send(one, 30);
  advance(10_000);
  // Whoever has a name is no longer watched.
  await one.emitWithAck("login", "ann");
  await send(one, 30);
  await send(other, 8);
  assert.equal(bursts.length, 1);
  await send(other, 1);
  await until(() => bursts.length === 2);
  await pause(10);
  assert.equal(bursts.length, 2);
});

test("refused packets count, too; and those that are watched are the user's choice", async (t) => {
  const bursts = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    {
      store,
      burst: {
        threshold: 20,
        window: "1h",
        when: (socket) => socket.data.userId !== "ann",
        onBurst: (burst) => bursts.push(burst),
      },
      events: { chat: { limit: { limit: 1, window: "1h" } } },
    },
    { before: believe, onConnection: answering },
  );
  await send(await connect(as("ann")), 30);
  assert.deepEqual(bursts, []);
  await send(await connect(as("bob")), 18);
  await until(() => bursts.length === 1);
});

test("nodes that share a store tell of a burst once between them", async (t) => {
  const bursts = [];
  const database = new Database();
  const node = () =>
    start(
      t,
      {
        store: database.store(),
        timeout: "5s",
        burst: {
          threshold: 200,
          window: "1h",
          cooldown: "2h",
          onBurst: (burst) => bursts.push(burst),
        },
      },
      { onConnection: answering },
    );
  const nodes = [await node(), await node(), await node()];
  const clients = await Promise.all(nodes.map(({ connect }) => connect()));
  for (const client of clients) for (let at = 0; at < 150; at += 1) client.emit("chat");
  await Promise.all(clients.map((client) => send(client, 1)));
  await until(() => bursts.length > 0);
  await pause(50);
  assert.equal(bursts.length, 1);
  assert.ok(bursts[0].count >= 200);
});

test("an onBurst that fails is called again, and nothing is counted again", async (t) => {
  const calls = [];
  let fails = 2;
  const { connect } = await start(
    t,
    {
      burst: {
        threshold: 3,
        window: "1h",
        onBurst: async (burst) => {
          calls.push({ ...burst, at: performance.now() });
          fails -= 1;
          if (fails >= 0) throw new Error("the pager is down");
        },
      },
    },
    { onConnection: answering },
  );
  await send(await connect(), 2);
  await until(() => calls.length === 3);
  assert.deepEqual(
    calls.map(({ count }) => count),
    [3, 3, 3],
  );
  assert.ok(calls[1].at - calls[0].at >= 99 && calls[2].at - calls[1].at >= 199);
});

test("a firing whose reply is lost is told of by the next try, a store that fails stops nothing", async (t) => {
  const bursts = [];
  const database = new Database();
  const { compareAndSet } = database;
  let lost = 0;
  database.compareAndSet = async (...args) => {
    const wrote = await compareAndSet.apply(database, args);
    if (lost > 0 && wrote) {
      lost -= 1;
      throw new Error("the reply is lost");
    }
    return wrote;
  };
  const { connect } = await start(
    t,
    {
      store: database.store(),
      burst: { threshold: 2, window: "1h", onBurst: (burst) => bursts.push(burst) },
    },
    { onConnection: answering },
  );
  const client = await connect();
  await until(() => database.values.size === 1);
  await pause(10);
  lost = 1;
  await send(client, 1);
  await until(() => bursts.length === 1);
  assert.equal(lost, 0);
  assert.deepEqual(bursts, [{ identity: "127.0.0.1", count: 2 }]);
  database.before = () => Promise.reject(new Error("down"));
  await send(client, 5);
});

test("when it cannot be told who is watched, nobody passes", async (t) => {
  let answer = () => true;
  const { connect, dial } = await start(
    t,
    { burst: { threshold: 100, window: "1h", when: () => answer(), onBurst: () => {} } },
    { onConnection: answering },
  );
  const client = await connect();
  for (answer of [
    () => undefined,
    () => 1,
    () => Promise.reject(new Error("late")),
    () => {
      throw new Error("broken");
    },
  ]) {
    assert.equal((await client.emitWithAck("chat")).error.code, "BAD_REQUEST");
    assert.equal((await refusedBy(dial())).data.code, "BAD_REQUEST");
  }
});
