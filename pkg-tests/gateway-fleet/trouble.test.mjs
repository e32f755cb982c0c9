// A gateway on a real Redis, and what a real client sees when that is slow, hangs, or is gone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { RedisStore } from "tidegate/redis";
import { believe, gate, start, until } from "../gateway/harness.mjs";
import { Server } from "../redis/servers.mjs";
import { as } from "./fleet.mjs";

const TWO = { algorithm: "fixed-window", limit: 2, window: "1h" };
const events = { chat: { limit: TWO }, order: { dedup: {} } };

/** A Redis, and stores of it. */
async function redis(t) {
  const server = await Server.start();
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.disconnect();
    await server.stop();
  });
  const store = () => {
    const client = new Redis(server.port, { retryStrategy: () => 20 });
    client.on("error", () => {});
    clients.push(client);
    return new RedisStore(client);
  };
  return { server, store };
}

/** Handlers of a server that counts what it handles. */
function handlers(handled) {
  return (socket, gateway) => {
    gateway.on(socket, "chat", () => "ok");
    gateway.on(socket, "order", ({ mid }) => {
      handled.push(mid);
      return mid;
    });
  };
}

const code = (answer) => answer?.error?.code ?? answer;
const GONE = "STORE_UNAVAILABLE";
const expected = {
  deny: { chats: [GONE, GONE, GONE], orders: [GONE, GONE], handled: [] },
  allow: { chats: ["ok", "ok", "ok"], orders: ["b", "b"], handled: ["b", "b"] },
  local: { chats: ["ok", "ok", "RATE_LIMITED"], orders: ["b", "b"], handled: ["b"] },
};
const troubles = {
  hangs: { begin: (server) => server.signal("SIGSTOP"), end: (server) => server.signal("SIGCONT") },
  "is gone": { begin: (server) => server.kill(), end: (server) => server.restart() },
};

for (const [trouble, { begin, end }] of Object.entries(troubles)) {
  for (const [onStoreError, sees] of Object.entries(expected)) {
    test(`the store ${trouble}: "${onStoreError}", and afterwards all is as before`, async (t) => {
      const { server, store } = await redis(t);
      const handled = [];
      const options = { store: store(), events, onStoreError, timeout: 150 };
      const { connect } = await start(t, options, {
        early: believe,
        onConnection: handlers(handled),
      });
      const client = await connect(as("before"));
      const order = (mid) => client.emitWithAck("order", { mid }).then(code);
      assert.equal(await order("a"), "a");

      await begin(server);
      const chats = [];
      for (let sent = 0; sent < 3; sent += 1) chats.push(code(await client.emitWithAck("chat")));
      const orders = [await order("b"), await order("b")];
      assert.deepEqual({ chats, orders, handled: handled.slice(1) }, sees);

      await end(server);
      const later = await connect(as("afterwards"));
      await until(async () => code(await later.emitWithAck("order", { mid: "c" })) === "c");
      const codes = [];
      for (let sent = 0; sent < 3; sent += 1) codes.push(code(await later.emitWithAck("chat")));
      assert.deepEqual(codes, ["ok", "ok", "RATE_LIMITED"]);
    });
  }
}

test("what is decided ahead reaches the handlers in the order sent", async (t) => {
  const { store } = await redis(t);
  const handled = [];
  // An order takes one way to the store more than a chat does.
  const plenty = { limit: 1_000, window: "1h" };
  const rules = { chat: { limit: plenty }, order: { limit: plenty, dedup: {} } };
  const { connect } = await start(
    t,
    { store: store(), events: rules, timeout: "5s" },
    {
      onConnection(socket) {
        for (const event of ["chat", "order"]) {
          socket.on(event, ({ mid }, acknowledge) => {
            handled.push(mid);
            acknowledge(mid);
          });
        }
      },
    },
  );
  const client = await connect();
  const mids = Array.from({ length: 300 }, (_, at) => `m${at}`);
  const answers = mids.map((mid, at) => {
    if (at % 5 === 0) client.emit("order", { mid: mids[0] }, () => {});
    return client.emitWithAck(at % 2 === 0 ? "order" : "chat", { mid });
  });
  assert.deepEqual(await Promise.all(answers), mids);
  assert.deepEqual(handled, mids);
});

test("claims that were taken ahead go back when their socket leaves", async (t) => {
  const { server, store } = await redis(t);
  const handled = [];
  const options = { store: store(), events: { order: { dedup: { lease: "1h" } } }, timeout: "5s" };
  const { connect, io } = await start(t, options, {
    early: believe,
    onConnection: handlers(handled),
  });
  const client = await connect(as("leaver"));
  const mids = ["x", "y", "z"];
  await client.emitWithAck("order", { mid: "first" });
  server.signal("SIGSTOP");
  for (const mid of mids) client.emit("order", { mid }, () => {});
  await client
    .timeout(200)
    .emitWithAck("nobody hears")
    .catch(() => {});
  client.disconnect();
  await until(() => io.engine.clientsCount === 0);
  server.signal("SIGCONT");
  const again = await connect(as("leaver"));
  const answers = await Promise.all(mids.map((mid) => again.emitWithAck("order", { mid })));
  assert.deepEqual(answers, mids);
  assert.deepEqual(handled, ["first", ...mids]);
});

test("a gateway that closes waits for its handlers, and what they did is known to the others", async (t) => {
  const { store } = await redis(t);
  const { opened, open } = gate();
  let runs = 0;
  const options = { store: store(), events, timeout: "5s" };
  const slow = {
    early: believe,
    onConnection(socket, gateway) {
      gateway.on(socket, "order", async () => {
        runs += 1;
        await opened;
        return "done";
      });
    },
  };
  const [closing, other] = [
    await start(t, options, slow),
    await start(t, { ...options, store: store() }, slow),
  ];
  const client = await closing.connect(as("worker"));
  const answer = client.emitWithAck("order", { mid: "a" });
  await until(() => runs === 1);
  const closed = closing.gateway.close();
  assert.equal(code(await client.emitWithAck("order", { mid: "b" })), GONE);
  open();
  await closed;
  assert.equal(await answer, "done");
  const elsewhere = await other.connect(as("worker"));
  assert.equal(await elsewhere.emitWithAck("order", { mid: "a" }), "done");
  assert.equal(runs, 1);
});
