import assert from "node:assert/strict";
import { test } from "node:test";
import { onEvent } from "tidegate";
import { as, believe, recovery, settled, start, stillStore, until } from "./harness.mjs";

const two = { limit: 2, window: "10s" };
const refusedFor = (retryAfterMs, limit = 2) => ({
  ok: false,
  error: { code: "RATE_LIMITED", retryAfterMs, limit, remaining: 0 },
});
const BAD_REQUEST = {
  ok: false,
  error: { code: "BAD_REQUEST", retryAfterMs: 0, limit: 0, remaining: 0 },
};

/** Handlers that note what they get, and acknowledge it. */
function listening(handled, ...events) {
  return (socket) => {
    socket.on("settled", (acknowledge) => acknowledge());
    for (const event of events) {
      socket.on(event, (...args) => {
        handled.push(args.filter((arg) => typeof arg !== "function"));
        if (typeof args.at(-1) === "function") args.at(-1)({ ok: true });
      });
    }
  };
}

test("over the limit the client is told when the same packet fits, to the millisecond", async (t) => {
  const handled = [];
  const { store, advance } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    { onConnection: listening(handled, "chat") },
  );
  const client = await connect();
  assert.deepEqual(await client.emitWithAck("chat", 1), { ok: true });
  assert.deepEqual(await client.emitWithAck("chat", 2), { ok: true });
  assert.deepEqual(await client.emitWithAck("chat", 3), refusedFor(5_000));
  advance(4_999);
  assert.deepEqual(await client.emitWithAck("chat", 4), refusedFor(1));
  advance(1);
  assert.deepEqual(await client.emitWithAck("chat", 5), { ok: true });
  assert.deepEqual(handled, [[1], [2], [5]]);
});

test("without an acknowledgement a refusal is an event of its own", async (t) => {
  const handled = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    { onConnection: listening(handled, "chat") },
  );
  const client = await connect();
  for (let at = 0; at < 4; at += 1) client.emit("chat", at);
  // What looks like an acknowledgement and is none is an argument.
  client.emit("chat", 4, "acknowledge");
  await until(() => client.rejected.length === 3);
  const { error } = refusedFor(5_000);
  assert.deepEqual(client.rejected, [
    ["chat", error],
    ["chat", error],
    ["chat", error],
  ]);
  assert.deepEqual(handled, [[0], [1]]);
});

test("a flood through a real client: the limit is handled, the rest is not", async (t) => {
  const handled = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: { limit: 100, window: "1m" } } } },
    { onConnection: listening(handled, "chat") },
  );
  const client = await connect();
  const answers = await Promise.all(
    Array.from({ length: 2_000 }, (_, at) => client.emitWithAck("chat", at)),
  );
  assert.equal(answers.filter(({ ok }) => ok).length, 100);
  assert.deepEqual(
    handled.map(([at]) => at),
    Array.from({ length: 100 }, (_, at) => at),
  );
});

test("a refused packet is acknowledged, so a client that retries sends it once", async (t) => {
  const handled = [];
  const errors = [];
  let arrived = 0;
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    {
      onConnection: (socket) => {
        listening(handled, "chat")(socket);
        socket.conn.on("data", (packet) => {
          if (packet.includes('"chat"')) arrived += 1;
        });
        socket.on("error", (error) => errors.push(error));
      },
    },
  );
  const client = await connect({ retries: 2, ackTimeout: 2_000 });
  for (const ok of [true, true, false, false]) {
    const answer = await client.emitWithAck("chat", "x");
    assert.equal(answer.ok, ok);
  }
  assert.equal(arrived, 4);
  assert.equal(handled.length, 2);
  assert.deepEqual(errors, []);
});

test("a denied packet charges nothing, several limits are one, and a cost is what the packet weighs", async (t) => {
  const { store } = stillStore();
  const limit = [
    { name: "minute", limit: 10, window: "1m" },
    { name: "hour", algorithm: "fixed-window", limit: 12, window: "1h" },
  ];
  const rule = { limit, cost: ([text]) => text.length };
  const { connect } = await start(
    t,
    { store, events: { chat: rule } },
    { onConnection: listening([], "chat") },
  );
  const client = await connect();
  assert.equal((await client.emitWithAck("chat", "12345678")).ok, true);
  const denied = await client.emitWithAck("chat", "1234");
  assert.deepEqual(denied.error, {
    code: "RATE_LIMITED",
    retryAfterMs: 12_000,
    limit: 10,
    remaining: 2,
  });
  assert.equal((await client.emitWithAck("chat", "12")).ok, true);
  // More than fits at any time: no wait helps, and JSON has no infinity.
  const never = await client.emitWithAck("chat", "12345678901");
  assert.equal(never.error.code, "RATE_LIMITED");
  assert.equal(never.error.retryAfterMs, null);
});

test("a cost that cannot be told refuses the packet, and tells the server why", async (t) => {
  const handled = [];
  const errors = [];
  const answers = [
    () => Number.NaN,
    () => 0,
    () => -1,
    () => 1.5,
    () => "1",
    () => 2 ** 53,
    () => undefined,
    () => Promise.resolve(1),
    () => Promise.reject(new Error("late")),
    () => {
      throw new Error("broken");
    },
  ];
  const rule = { limit: two, cost: ([at]) => answers[at]() };
  const { connect } = await start(
    t,
    { events: { chat: rule } },
    {
      onConnection: (socket) => {
        listening(handled, "chat")(socket);
        socket.on("error", (error) => errors.push(error));
        // A listener that fails itself changes nothing.
        socket.on("error", () => {
          throw new Error("the listener's own trouble");
        });
      },
    },
  );
  const client = await connect();
  for (const at of answers.keys()) {
    assert.deepEqual(await client.emitWithAck("chat", at), BAD_REQUEST, String(answers[at]));
  }
  assert.deepEqual(handled, []);
  assert.equal(errors.length, answers.length);
  assert.equal(errors.at(-1).message, "broken");
});

test("events without a rule pass, and those of the others have a budget each", async (t) => {
  const handled = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    {
      store,
      events: { "*": { limit: two }, chat: { limit: { limit: 1, window: "10s" } }, settled: {} },
    },
    { onConnection: listening(handled, "chat", "one", "two", "*", "7") },
  );
  const client = await connect();
  const oks = async (event, times) => {
    const answers = [];
    for (let at = 0; at < times; at += 1) answers.push(await client.emitWithAck(event));
    return answers.filter(({ ok }) => ok).length;
  };
  assert.equal(await oks("chat", 3), 1);
  assert.equal(await oks("one", 3), 2);
  assert.equal(await oks("two", 3), 2);
  // A number is the name of the same listeners as its text, and "*" is a name like others when it is listened for.
  assert.deepEqual([await oks(7, 1), await oks("7", 1), await oks(7, 1)], [1, 1, 0]);
  assert.equal(await oks("*", 3), 2);
  await settled(client);
});

test("a client cannot invent budgets: names that nobody listens for share one", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { "*": { limit: { limit: 5, window: "10s" } }, settled: {} } },
    { onConnection: listening([], "chat") },
  );
  const client = await connect();
  const invented = Array.from({ length: 200 }, (_, at) => `invented-${at}`);
  for (const name of [...invented, "__proto__", "constructor", "toString"]) client.emit(name);
  await until(() => client.rejected.length === 198);
  assert.equal(store.size, 1);
  assert.equal((await client.emitWithAck("chat")).ok, true);
});

test("names that objects inherit have rules only where they are given one", async (t) => {
  const handled = [];
  const { store } = stillStore();
  const events = Object.fromEntries([["__proto__", { limit: two }]]);
  const { connect } = await start(
    t,
    { store, events },
    { onConnection: listening(handled, "__proto__", "constructor") },
  );
  const client = await connect();
  for (let at = 0; at < 3; at += 1)
    assert.equal((await client.emitWithAck("constructor")).ok, true);
  const answers = [];
  for (let at = 0; at < 3; at += 1) answers.push((await client.emitWithAck("__proto__")).ok);
  assert.deepEqual(answers, [true, true, false]);
});

test("a packet without a name, which no client of Socket.IO sends, costs what invented names cost", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { "*": { limit: two }, settled: {} } },
    { onConnection: listening([]) },
  );
  const client = await connect();
  for (let at = 0; at < 3; at += 1) client.io.engine.write("2");
  await until(() => client.rejected.length === 1);
  await settled(client);
  assert.equal(client.rejected[0][0], null);
});

test("a user's sockets share a budget, a reconnect buys no new one, and users do not share", async (t) => {
  const { store } = stillStore();
  const five = { limit: 5, window: "10s" };
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: five } } },
    { before: believe, onConnection: listening([], "chat") },
  );
  const sent = async (client, times) => {
    const answers = [];
    for (let at = 0; at < times; at += 1) answers.push((await client.emitWithAck("chat")).ok);
    client.disconnect();
    return answers.filter(Boolean).length;
  };
  const sockets = await Promise.all(Array.from({ length: 5 }, () => connect(as("ann"))));
  const counts = await Promise.all(sockets.map((socket) => sent(socket, 3)));
  assert.equal(
    counts.reduce((sum, count) => sum + count),
    5,
  );
  assert.equal(await sent(await connect(as("ann")), 3), 0);
  assert.equal(await sent(await connect(as("bob")), 6), 5);
  assert.equal(await sent(await connect(as("a")), 6), 5);
  // A user's id is the same as text and as a number, and never the same as an address.
  assert.equal(
    (await sent(await connect(as(42)), 3)) + (await sent(await connect(as("42")), 3)),
    5,
  );
  assert.equal(await sent(await connect(as("127.0.0.1")), 6), 5);
  // Whoever has no name is known by the address, also when the socket is a new one.
  assert.equal(await sent(await connect(), 3), 3);
  assert.equal(await sent(await connect(), 3), 2);
});

test("parts of keys that could be read in two ways are two keys", async (t) => {
  const { store } = stillStore();
  const one = { limit: { limit: 1, window: "10s" } };
  const { connect } = await start(
    t,
    { store, events: { chat: one, "b:chat": one } },
    {
      before: (io) => {
        believe(io);
        for (const name of ["/a", "/a:b"])
          io.of(name).on("connection", listening([], "chat", "b:chat"));
      },
    },
  );
  const oks = [];
  for (const [namespace, event] of [
    ["/a", "b:chat"],
    ["/a:b", "chat"],
  ]) {
    const client = await connect({}, namespace);
    oks.push((await client.emitWithAck(event)).ok);
  }
  assert.deepEqual(oks, [true, true]);
});

test("whose packets they are is asked of every packet", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    {
      onConnection: (socket) => {
        listening([], "chat")(socket);
        socket.on("login", (user, acknowledge) => {
          socket.data.user = { id: user };
          acknowledge();
        });
      },
    },
  );
  const client = await connect();
  const oks = [];
  for (const login of [undefined, undefined, undefined, "ann", undefined, undefined, "bob"]) {
    if (login !== undefined) await client.emitWithAck("login", login);
    oks.push((await client.emitWithAck("chat")).ok);
  }
  assert.deepEqual(oks, [true, true, false, true, true, false, true]);
});

test("an identity that cannot be told refuses the packet", async (t) => {
  const handled = [];
  let answer;
  const { connect } = await start(
    t,
    { identify: () => answer(), events: { chat: { limit: two } } },
    { onConnection: listening(handled, "chat") },
  );
  const client = await connect();
  for (answer of [
    () => undefined,
    () => "",
    () => 7,
    () => ({}),
    () => Promise.reject(new Error("late")),
    () => {
      throw new Error("broken");
    },
  ]) {
    assert.deepEqual(await client.emitWithAck("chat"), BAD_REQUEST, String(answer));
  }
  assert.deepEqual(handled, []);
});

test("a user id that is none refuses the packet, rather than lumping users together", async (t) => {
  const handled = [];
  const { connect } = await start(
    t,
    { events: { chat: { limit: two } } },
    { before: believe, onConnection: listening(handled, "chat") },
  );
  for (const user of ["", { id: 1 }, [], true]) {
    const client = await connect(as(user));
    assert.deepEqual(await client.emitWithAck("chat"), BAD_REQUEST, JSON.stringify(user));
  }
  assert.deepEqual(handled, []);
});

test("a socket that is its own identity takes its limits along when it leaves", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, identify: (socket) => socket.id, events: { "*": { limit: two } } },
    { onConnection: listening([], "chat", "shout") },
  );
  const client = await connect();
  for (let at = 0; at < 3; at += 1) await client.emitWithAck("chat");
  await client.emitWithAck("shout");
  assert.equal(store.size, 2);
  client.disconnect();
  await until(() => store.size === 0);
});

test("namespaces have budgets of their own, those made later and dynamic ones too", async (t) => {
  const { store } = stillStore();
  const { connect, io } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    {
      onConnection: listening([], "chat"),
      before: (io) => {
        io.of(/^\/room-\d+$/).on("connection", listening([], "chat"));
        io.of((name, _, next) => next(null, name === "/asked")).on(
          "connection",
          listening([], "chat"),
        );
      },
    },
  );
  io.of("/late").on("connection", listening([], "chat"));
  for (const namespace of ["/", "/room-1", "/room-2", "/asked", "/late"]) {
    const client = await connect({}, namespace);
    const oks = [];
    for (let at = 0; at < 3; at += 1) oks.push((await client.emitWithAck("chat")).ok);
    assert.deepEqual(oks, [true, true, false], namespace);
  }
});

test("acknowledgements in the shape that clients of Arkos know, or any other", async (t) => {
  const handled = [];
  const shapes = {
    arkos: { error: "Too many requests", retryAfter: 10_000 },
    own: ["RATE_LIMITED", 10_000, 1, 0],
    broken: refusedFor(10_000, 1),
    late: refusedFor(10_000, 1),
  };
  const acks = {
    arkos: "arkos",
    own: ({ code, retryAfterMs, limit, remaining }) => [code, retryAfterMs, limit, remaining],
    broken: () => {
      throw new Error("broken");
    },
    late: () => Promise.reject(new Error("late")),
  };
  for (const [name, shape] of Object.entries(shapes)) {
    const { store } = stillStore();
    const options = {
      store,
      acks: acks[name],
      events: { chat: { limit: { limit: 1, window: "10s" } } },
    };
    const { connect } = await start(t, options, { onConnection: listening(handled, "chat") });
    const client = await connect();
    await client.emitWithAck("chat");
    assert.deepEqual(await client.emitWithAck("chat"), shape, name);
    // The event has one shape for all.
    client.emit("chat");
    await until(() => client.rejected.length === 1);
    assert.deepEqual(client.rejected[0], ["chat", refusedFor(10_000, 1).error], name);
  }
});

test("bytes, several arguments and volatile packets reach the handlers as they were sent", async (t) => {
  const handled = [];
  const { connect } = await start(
    t,
    { events: { "*": { limit: { limit: 100, window: "1s" } } } },
    { onConnection: listening(handled, "chat") },
  );
  const client = await connect();
  await client.emitWithAck("chat", Buffer.from([1, 2]), { deep: [Buffer.from([3])] }, null, "text");
  client.volatile.emit("chat", "volatile");
  await until(() => handled.length === 2);
  assert.deepEqual(handled[0], [Buffer.from([1, 2]), { deep: [Buffer.from([3])] }, null, "text"]);
  assert.deepEqual(handled[1], ["volatile"]);
});

test("a rehearsal reports, and refuses nothing", async (t) => {
  const handled = [];
  const events = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    {
      store,
      dryRun: true,
      connect: { limit: { limit: 1, window: "10s" }, maxSockets: 1 },
      disconnectAfter: { denials: 1, window: "1h" },
      events: { chat: { limit: two, dedup: {} } },
    },
    { onConnection: listening(handled, "chat") },
  );
  t.after(onEvent((event) => events.push(event)));
  const [client] = [await connect(), await connect()];
  for (let at = 0; at < 3; at += 1) {
    assert.deepEqual(await client.emitWithAck("chat", { mid: "same" }), { ok: true });
  }
  assert.equal(handled.length, 3);
  const dryRuns = events
    .filter(({ type }) => type === "decision")
    .map(({ decision }) => decision.dryRun);
  assert.deepEqual(dryRuns, [false, true, false, false, true]);
  assert.equal(events.filter(({ type }) => type === "duplicate").length, 1);
  assert.ok(client.connected);
});

test("a socket is disconnected after so many denials, and is told of each before", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, disconnectAfter: { denials: 3, window: "1h" }, events: { chat: { limit: two } } },
    { onConnection: listening([], "chat") },
  );
  const client = await connect();
  for (let at = 0; at < 4; at += 1) await client.emitWithAck("chat");
  assert.ok(client.connected);
  const reason = new Promise((resolve) => client.once("disconnect", resolve));
  assert.deepEqual(await client.emitWithAck("chat"), refusedFor(5_000));
  assert.equal(await reason, "io server disconnect");
});

test("a recovered socket has the budget that it had", recovery, async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, identify: (socket) => socket.id, events: { chat: { limit: two } } },
    {
      io: { connectionStateRecovery: {} },
      onConnection: (socket) => {
        listening([], "chat")(socket);
        // Recovery needs something to go on from.
        socket.emit("hello");
      },
    },
  );
  const client = await connect({ reconnection: true, reconnectionDelay: 1 });
  for (let at = 0; at < 2; at += 1) assert.equal((await client.emitWithAck("chat")).ok, true);
  client.io.engine.close();
  await until(() => !client.connected);
  await until(() => client.connected);
  assert.ok(client.recovered);
  assert.equal((await client.emitWithAck("chat")).ok, false);
});
