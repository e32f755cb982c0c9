import assert from "node:assert/strict";
import { test } from "node:test";

import { io as dial } from "socket.io-client";
import { createGateway } from "tidegate/socket.io";
import { gate, Server, start, stillStore, until } from "./harness.mjs";

const two = { limit: 2, window: "10s" };
const chatting = (socket) => socket.on("chat", (acknowledge) => acknowledge({ ok: true }));

async function oks(client, times) {
  const answers = [];
  for (let at = 0; at < times; at += 1) answers.push((await client.emitWithAck("chat")).ok);
  return answers;
}

test("what is no server, or registered already, cannot be registered", () => {
  const gateway = createGateway();
  for (const io of [undefined, null, 7, {}, []]) {
    assert.throws(() => gateway.register(io), { code: "bad_argument" });
  }
  const io = new Server();
  assert.equal(gateway.register(io), gateway);
  assert.throws(() => gateway.register(io), { code: "bad_argument", message: /already/ });
  assert.throws(() => gateway.register(new Server(), { oops: 1 }), { code: "bad_policy" });
  assert.throws(() => gateway.register(new Server(), 5), { code: "bad_policy" });
});

test("a handler needs a socket of a registered server, a name and a function", async (t) => {
  const { gateway, connect } = await start(t, {}, { onConnection: chatting });
  await connect();
  const stranger = { on() {} };
  assert.throws(() => gateway.on(stranger, "chat", () => {}), {
    code: "bad_argument",
    message: /socket/,
  });
  assert.throws(() => gateway.on(undefined, "chat", () => {}), { code: "bad_argument" });
});

test("handlers may be given as soon as a socket is there, and wrong ones are refused", async (t) => {
  const refused = [];
  const { connect } = await start(
    t,
    { events: { early: { dedup: {} } } },
    {
      before: (io, gateway) => {
        io.use((socket, next) => {
          gateway.on(socket, "early", () => "handled");
          for (const [event, handler] of [
            [7, () => {}],
            ["chat", "handler"],
          ]) {
            try {
              gateway.on(socket, event, handler);
            } catch ({ code }) {
              refused.push(code);
            }
          }
          next();
        });
      },
    },
  );
  const client = await connect();
  assert.equal(await client.emitWithAck("early", { mid: "a" }), "handled");
  assert.deepEqual(refused, ["bad_argument", "bad_argument"]);
});

test("two servers of one gateway share budgets; a server may differ", async (t) => {
  const { store } = stillStore();
  const here = await start(
    t,
    { store, events: { chat: { limit: two } } },
    { onConnection: chatting },
  );
  const other = new Server();
  other.on("connection", chatting);
  here.gateway.register(other);
  const strict = new Server();
  strict.on("connection", chatting);
  here.gateway.register(strict, {
    events: { chat: { limit: { ...two, limit: 1, name: "strict" } } },
  });
  t.after(() => Promise.all([other.close(), strict.close()]));
  const connectTo = async (io) => {
    io.listen(0);
    await until(() => io.httpServer.listening);
    const client = dial(`http://127.0.0.1:${io.httpServer.address().port}`, { forceNew: true });
    t.after(() => client.disconnect());
    return client;
  };
  assert.deepEqual(await oks(await here.connect(), 1), [true]);
  assert.deepEqual(await oks(await connectTo(other), 2), [true, false]);
  assert.deepEqual(await oks(await connectTo(strict), 2), [true, false]);
});

test("a gateway that is closed refuses what has a rule, and waits for the handlers at work", async (t) => {
  const { opened, open } = gate();
  const { gateway, connect } = await start(
    t,
    { onStoreError: "allow", events: { chat: { limit: two }, order: { dedup: {} } } },
    {
      onConnection: (socket) => {
        chatting(socket);
        socket.on("free", (acknowledge) => acknowledge("free"));
        gateway.on(socket, "order", async () => {
          await opened;
          return { ok: true };
        });
      },
    },
  );
  const client = await connect();
  const order = client.emitWithAck("order", { mid: "a" });
  await client.emitWithAck("free");
  let closed = false;
  const closing = gateway.close().then(() => {
    closed = true;
  });
  for (const event of ["chat", "order"]) {
    assert.equal((await client.emitWithAck(event, { mid: "b" })).error.code, "STORE_UNAVAILABLE");
  }
  assert.equal(await client.emitWithAck("free"), "free");
  assert.equal(closed, false);
  open();
  assert.deepEqual(await order, { ok: true });
  await closing;
  await gateway.close();
});

test("a server of long-polling clients only is limited as any other", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    { onConnection: chatting },
  );
  assert.deepEqual(await oks(await connect({ transports: ["polling"] }), 3), [true, true, false]);
});
