import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { metrics } from "tidegate";
import {
  as,
  believe,
  Database,
  gate,
  recovery,
  settled,
  start,
  stillStore,
  until,
} from "./harness.mjs";

const DUPLICATE = { ok: true, duplicate: true };
const HANDLER_FAILED = {
  ok: false,
  error: { code: "HANDLER_FAILED", retryAfterMs: 0, limit: 0, remaining: 0 },
};

/** Counts orders, and acknowledges each with its number. */
function counting(orders, event = "order") {
  return (socket) => {
    socket.on("settled", (acknowledge) => acknowledge());
    socket.on(event, (order, acknowledge) => {
      orders.push(order);
      if (typeof acknowledge === "function") acknowledge({ ok: true, number: orders.length });
    });
  };
}

const order = { order: { dedup: {} } };

test("a message is handled once, and each of its copies gets the acknowledgement of the first", async (t) => {
  const orders = [];
  const { connect } = await start(t, { events: order }, { onConnection: counting(orders) });
  const client = await connect();
  for (let copy = 0; copy < 3; copy += 1) {
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, number: 1 });
  }
  assert.deepEqual(await client.emitWithAck("order", { mid: "b" }), { ok: true, number: 2 });
  assert.deepEqual(orders, [{ mid: "a" }, { mid: "b" }]);
});

test("copies are charged, and answered over the limit; a refused message has not been seen", async (t) => {
  const orders = [];
  const { store, advance } = stillStore();
  const limit = { limit: 2, window: "10s" };
  const { connect } = await start(
    t,
    { store, events: { order: { limit, dedup: {} } } },
    { onConnection: counting(orders) },
  );
  const client = await connect();
  const send = (mid) => client.emitWithAck("order", { mid });
  assert.deepEqual(await send("a"), { ok: true, number: 1 });
  assert.deepEqual(await send("a"), { ok: true, number: 1 });
  assert.equal((await send("b")).error.code, "RATE_LIMITED");
  assert.deepEqual(await send("a"), { ok: true, number: 1 });
  advance(5_000);
  assert.deepEqual(await send("b"), { ok: true, number: 2 });
  assert.deepEqual(await send("b"), { ok: true, number: 2 });
});

test("an id is remembered for its time, and then is new", async (t) => {
  const orders = [];
  const { store, advance } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { order: { dedup: { ttl: "1m" } } } },
    { onConnection: counting(orders) },
  );
  const client = await connect();
  await client.emitWithAck("order", { mid: "a" });
  advance(59_999);
  assert.equal((await client.emitWithAck("order", { mid: "a" })).number, 1);
  advance(1);
  assert.equal((await client.emitWithAck("order", { mid: "a" })).number, 2);
});

test("a handler that fails is not told of, may be retried, and is then run", async (t) => {
  const errors = [];
  const tries = [];
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket, gateway) => {
        socket.on("error", (error) => errors.push(error.message));
        gateway.on(socket, "order", async function (...args) {
          tries.push(args);
          assert.equal(this, socket);
          await pause(1);
          if (tries.length === 1) throw new Error("the password is 1234");
          return { ok: true, tries: tries.length };
        });
        gateway.on(socket, "plain", () => {
          throw new Error("at once");
        });
      },
    },
  );
  const client = await connect();
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), HANDLER_FAILED);
  for (let copy = 0; copy < 2; copy += 1) {
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, tries: 2 });
  }
  // The handler is given the arguments, and no acknowledgement.
  assert.deepEqual(tries, [[{ mid: "a" }], [{ mid: "a" }]]);
  // Messages without an id, and events without a rule, are answered in the same way.
  assert.deepEqual(await client.emitWithAck("plain"), HANDLER_FAILED);
  assert.deepEqual(await client.emitWithAck("order"), { ok: true, tries: 3 });
  client.emit("plain");
  await until(() => client.rejected.length === 1);
  assert.deepEqual(client.rejected, [["plain", HANDLER_FAILED.error]]);
  assert.deepEqual(errors, ["the password is 1234", "at once", "at once"]);
});

test("copies that arrive meanwhile wait outside the queue, on whichever socket, and get the same", async (t) => {
  const { opened, open } = gate();
  const orders = [];
  const { connect } = await start(
    t,
    { events: order },
    {
      before: believe,
      onConnection: (socket, gateway) => {
        socket.on("settled", (acknowledge) => acknowledge());
        gateway.on(socket, "order", async (payload) => {
          orders.push(payload);
          await opened;
          return { ok: true, number: orders.length };
        });
      },
    },
  );
  const [one, other] = [await connect(as("ann")), await connect(as("ann"))];
  const answers = [one, one, other].map((client) => client.emitWithAck("order", { mid: "a" }));
  other.emit("order", { mid: "a" });
  await Promise.all([settled(one), settled(other)]);
  assert.equal(orders.length, 1);
  open();
  for (const answer of await Promise.all(answers))
    assert.deepEqual(answer, { ok: true, number: 1 });
  assert.deepEqual(other.rejected, []);
});

test("copies that wait for a handler that fails are told so, too", async (t) => {
  const { opened, open } = gate();
  let runs = 0;
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket, gateway) => {
        socket.on("settled", (acknowledge) => acknowledge());
        gateway.on(socket, "order", async () => {
          runs += 1;
          await opened;
          throw new Error("failed");
        });
      },
    },
  );
  const client = await connect();
  const answers = [1, 2].map(() => client.emitWithAck("order", { mid: "a" }));
  await settled(client);
  open();
  assert.deepEqual(await Promise.all(answers), [HANDLER_FAILED, HANDLER_FAILED]);
  assert.equal(runs, 1);
});

test("a client that retries into a slow handler has its message handled once", async (t) => {
  let runs = 0;
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket) => {
        socket.on("order", async (_, acknowledge) => {
          runs += 1;
          await pause(120);
          acknowledge({ ok: true, runs });
        });
      },
    },
  );
  const client = await connect({ retries: 100, ackTimeout: 30 });
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, runs: 1 });
  assert.deepEqual(await client.emitWithAck("order", { mid: "b" }), { ok: true, runs: 2 });
});

test("a message sent while connecting, by a client that retries, is handled once", async (t) => {
  const orders = [];
  const { dial } = await start(t, { events: order }, { onConnection: counting(orders) });
  const client = dial({ retries: 2, ackTimeout: 1_000 });
  const answers = [];
  client.once("connect", () => {
    client.emit("order", { mid: "a" }, (_, answer) => answers.push(answer));
    client.emit("order", { mid: "b" }, (_, answer) => answers.push(answer));
  });
  await until(() => answers.length === 2);
  assert.deepEqual(orders, [{ mid: "a" }, { mid: "b" }]);
});

test("a client that reconnects while the handler runs gets the acknowledgement there", async (t) => {
  for (const register of ["gateway.on", "socket.on"]) {
    const { opened, open } = gate();
    let runs = 0;
    const { connect, io } = await start(
      t,
      { events: order },
      {
        before: believe,
        onConnection: (socket, gateway) => {
          const work = async () => {
            runs += 1;
            await opened;
            return { ok: true, runs };
          };
          if (register === "gateway.on") gateway.on(socket, "order", work);
          else socket.on("order", async (_, acknowledge) => acknowledge(await work()));
        },
      },
    );
    const first = await connect(as("ann"));
    first.emit("order", { mid: "a" }, () => assert.fail("this client is gone"));
    await until(() => runs === 1);
    first.disconnect();
    await until(() => io.sockets.sockets.size === 0);
    const second = await connect(as("ann"));
    const answer = second.emitWithAck("order", { mid: "a" });
    setTimeout(open, 20);
    assert.deepEqual(await answer, { ok: true, runs: 1 }, register);
  }
});

test("ids belong to their sender, event and namespace", async (t) => {
  const orders = [];
  const { connect } = await start(
    t,
    { events: { order: { dedup: {} }, "a:b": { dedup: {} }, a: { dedup: {} } } },
    {
      before: (io) => {
        believe(io);
        io.of("/other").on("connection", counting(orders));
      },
      onConnection: (socket) => {
        for (const event of ["order", "a:b", "a"]) counting(orders, event)(socket);
      },
    },
  );
  const ann = await connect(as("ann"));
  await ann.emitWithAck("order", { mid: "x" });
  // Nobody uses up somebody else's id, nor gets what they were told: neither a user nor a stranger at the same address.
  for (const [options, namespace] of [[as("bob")], [], [], [as("ann"), "/other"]]) {
    const client = await connect(options, namespace);
    const before = orders.length;
    assert.equal((await client.emitWithAck("order", { mid: "x" })).number, before + 1);
    assert.equal((await client.emitWithAck("order", { mid: "x" })).number, before + 1);
  }
  // The user's next socket is the same sender.
  assert.equal((await (await connect(as("ann"))).emitWithAck("order", { mid: "x" })).number, 1);
  const before = orders.length;
  await ann.emitWithAck("a:b", { mid: "c" });
  await ann.emitWithAck("a", { mid: "b:c" });
  assert.equal(orders.length, before + 2);
});

test("an identity of the user's own is the sender, unless it is an address or the socket itself", async (t) => {
  const orders = [];
  const { connect } = await start(
    t,
    {
      identify: ({ handshake, id }) =>
        handshake.auth.session ?? (handshake.auth.own ? id : "::ffff:203.0.113.9"),
      events: order,
    },
    { onConnection: counting(orders) },
  );
  const handled = async (auth) => {
    const client = await connect({ auth });
    const before = orders.length;
    await client.emitWithAck("order", { mid: "x" });
    return orders.length > before;
  };
  assert.deepEqual(
    [await handled({ session: "s" }), await handled({ session: "s" })],
    [true, false],
  );
  assert.deepEqual([await handled({}), await handled({})], [true, true]);
  assert.deepEqual([await handled({ own: true }), await handled({ own: true })], [true, true]);
});

test(
  "the sender without a name is the connection, kept when it is recovered",
  recovery,
  async (t) => {
    const orders = [];
    const { connect } = await start(
      t,
      { events: order },
      {
        io: { connectionStateRecovery: {} },
        onConnection: (socket) => {
          counting(orders)(socket);
          socket.emit("hello");
        },
      },
    );
    const client = await connect({ reconnection: true, reconnectionDelay: 1 });
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, number: 1 });
    client.io.engine.close();
    await until(() => !client.connected);
    await until(() => client.connected);
    assert.ok(client.recovered);
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, number: 1 });
  },
);

test("what an id is: own text or number, under _meta.mid or mid; anything else is no id", async (t) => {
  const orders = [];
  const { connect } = await start(t, { events: order }, { onConnection: counting(orders) });
  const client = await connect();
  const runsOf = async (first, second = first) => {
    const before = orders.length;
    await client.emitWithAck("order", first);
    await client.emitWithAck("order", second);
    return orders.length - before;
  };
  assert.equal(await runsOf({ mid: "text" }), 1);
  assert.equal(await runsOf({ _meta: { mid: "meta" } }), 1);
  assert.equal(await runsOf({ _meta: { mid: "shared" } }, { mid: "shared" }), 1);
  assert.equal(
    await runsOf({ _meta: { mid: "m1" }, mid: "same" }, { _meta: { mid: "m2" }, mid: "same" }),
    2,
  );
  assert.equal(await runsOf({ _meta: { mid: null }, mid: "under null" }, { mid: "under null" }), 1);
  assert.equal(await runsOf({ mid: 7 }, { mid: "7" }), 1);
  assert.equal(await runsOf({ mid: 0 }), 1);
  for (const mid of ["", null, true, {}, ["a"]])
    assert.equal(await runsOf({ mid }), 2, String(mid));
  for (const payload of [undefined, null, "text", 5, [], {}, Buffer.from("mid")]) {
    assert.equal(await runsOf(payload), 2, String(payload));
  }
  // What every object inherits, in a process where somebody's mistake made it so, is nobody's id.
  Object.defineProperty(Object.prototype, "mid", { value: "inherited", configurable: true });
  t.after(() => delete Object.prototype.mid);
  assert.equal(await runsOf({}), 2);
  // Ids are ordinary text, whatever they look like; long ones are told apart to the last character.
  const long = "x".repeat(500_000);
  const odd = [
    "__proto__",
    "constructor",
    "\0",
    "\ud800",
    "\udfff",
    "*?[]{}",
    "a\nb",
    long,
    `${long}y`,
    `${long}z`,
  ];
  for (const mid of odd) assert.equal(await runsOf({ mid }), 1, mid.slice(0, 20));
});

test("an id of the rule's own finding; when the finding fails, the packet is refused", async (t) => {
  const orders = [];
  const errors = [];
  const { connect } = await start(
    t,
    {
      events: {
        order: {
          dedup: {
            id: (args) => {
              if (args[1] === "throw") throw new Error("broken");
              if (args[1] === "promise") return Promise.reject(new Error("late"));
              return args[1];
            },
          },
        },
      },
    },
    {
      onConnection: (socket) => {
        socket.on("error", (error) => errors.push(error.message));
        socket.on("order", (...args) => {
          orders.push(args.slice(0, -1));
          args.at(-1)({ ok: true, number: orders.length });
        });
      },
    },
  );
  const client = await connect();
  for (const id of ["a", "a", "b", {}, {}]) await client.emitWithAck("order", 1, id);
  assert.equal(orders.length, 4);
  for (const id of ["throw", "promise"]) {
    assert.equal((await client.emitWithAck("order", 1, id)).error.code, "BAD_REQUEST");
  }
  assert.equal(orders.length, 4);
  assert.equal(errors.length, 2);
});

test("a message without an acknowledgement is done when it is dispatched", async (t) => {
  const orders = [];
  const { connect } = await start(t, { events: order }, { onConnection: counting(orders) });
  const client = await connect();
  for (let copy = 0; copy < 3; copy += 1) client.emit("order", { mid: "a" });
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), DUPLICATE);
  assert.equal(orders.length, 1);
  assert.deepEqual(client.rejected, []);
});

test("gateway.on remembers what its handler answers, whether or not it was asked to acknowledge", async (t) => {
  const orders = [];
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket, gateway) => {
        gateway.on(socket, "order", async (payload) => {
          await pause(5);
          orders.push(payload);
          return payload.answer === "nothing" ? undefined : { number: orders.length };
        });
      },
    },
  );
  const client = await connect();
  client.emit("order", { mid: "a" });
  for (let copy = 0; copy < 2; copy += 1) {
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { number: 1 });
  }
  for (let copy = 0; copy < 2; copy += 1) {
    assert.equal(await client.emitWithAck("order", { mid: "b", answer: "nothing" }), undefined);
  }
  assert.equal(orders.length, 2);
});

test("every argument of an acknowledgement is replayed, bytes as bytes", async (t) => {
  const answers = {
    bytes: [Buffer.from([0, 255]), { deep: [1, new Uint8Array([7, 8]).subarray(1)], same: null }],
    plain: ["text", null, { at: new Date(0) }, { bytes: [{ path: [0], base64: "AA==" }] }],
    none: [],
  };
  let runs = 0;
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket) => {
        socket.on("order", (payload, acknowledge) => {
          runs += 1;
          acknowledge(...answers[payload.mid]);
        });
      },
    },
  );
  const client = await connect();
  const send = (mid) =>
    new Promise((resolve) => client.emit("order", { mid }, (...args) => resolve(args)));
  for (const mid of Object.keys(answers)) {
    const first = await send(mid);
    assert.deepEqual(await send(mid), first, mid);
  }
  assert.deepEqual((await send("bytes"))[1], { deep: [1, Buffer.from([8])], same: null });
  assert.equal(runs, 3);
});

test("an acknowledgement above 64 KiB is sent, and its copies are told that it was done", async (t) => {
  for (const [acks, duplicate] of [
    ["tidegate", DUPLICATE],
    ["arkos", { success: true, duplicate: true }],
  ]) {
    const large = { large: "x".repeat(64 * 1024) };
    const { connect } = await start(
      t,
      { acks, events: order },
      { onConnection: (socket) => socket.on("order", (_, acknowledge) => acknowledge(large)) },
    );
    const client = await connect();
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), large);
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), duplicate);
  }
});

test("what cannot be sent is the handler's mistake, and the message may be sent again", async (t) => {
  const thrown = [];
  let runs = 0;
  const { connect } = await start(
    t,
    { events: { order: { dedup: {} }, plain: { dedup: {} } } },
    {
      onConnection: (socket, gateway) => {
        gateway.on(socket, "order", () => {
          runs += 1;
          return runs === 1 ? { number: 1n } : { number: runs };
        });
        socket.on("plain", (_, acknowledge) => {
          try {
            acknowledge(1n);
          } catch (error) {
            thrown.push(error);
            acknowledge("1");
            acknowledge("a second acknowledgement is ignored");
          }
        });
      },
    },
  );
  const client = await connect();
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), HANDLER_FAILED);
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { number: 2 });
  for (let copy = 0; copy < 2; copy += 1) {
    assert.equal(await client.emitWithAck("plain", { mid: "a" }), "1");
  }
  assert.ok(thrown[0] instanceof TypeError);
});

test("an acknowledgement is committed before it is sent", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  let held = false;
  database.before = (method, key) => {
    if (method !== "compareAndSet" || [...database.values.keys()].every((known) => known !== key))
      return undefined;
    held = true;
    return opened;
  };
  const orders = [];
  const { connect } = await start(
    t,
    { store: database.store(), timeout: "5s", events: order },
    { onConnection: counting(orders) },
  );
  const client = await connect();
  let answer;
  client.emit("order", { mid: "a" }, (told) => {
    answer = told;
  });
  await until(() => held);
  await settled(client);
  assert.equal(answer, undefined);
  open();
  await until(() => answer !== undefined);
  assert.deepEqual(answer, { ok: true, number: 1 });
});

test("over a synchronous store, an acknowledgement is not overtaken by what the handler sends next", async (t) => {
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket) => {
        socket.on("order", (_, acknowledge) => {
          acknowledge("first");
          socket.emit("second");
        });
      },
    },
  );
  const client = await connect();
  const seen = [];
  client.on("second", () => seen.push("second"));
  client.emit("order", { mid: "a" }, (answer) => seen.push(answer));
  await until(() => seen.length === 2);
  assert.deepEqual(seen, ["first", "second"]);
});

test("a message that a middleware of the server refuses has not been seen", async (t) => {
  const orders = [];
  const errors = [];
  let refuses = true;
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket) => {
        socket.use((_, next) => next(refuses ? new Error("not today") : undefined));
        socket.on("error", (error) => errors.push(error.message));
        counting(orders)(socket);
      },
    },
  );
  const client = await connect();
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), HANDLER_FAILED);
  refuses = false;
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, number: 1 });
  assert.deepEqual(errors, ["not today"]);
});

test("a message that is lost in a slow middleware, because its socket left, has not been seen", async (t) => {
  const orders = [];
  const { opened, open } = gate();
  let asked = 0;
  let slow = true;
  const { connect, io } = await start(
    t,
    { events: order },
    {
      before: believe,
      onConnection: (socket) => {
        socket.use((_, next) => {
          asked += 1;
          if (slow) opened.then(() => next());
          else next();
        });
        counting(orders)(socket);
      },
    },
  );
  const first = await connect(as("ann"));
  first.emit("order", { mid: "a" });
  await until(() => asked === 1);
  first.disconnect();
  await until(() => io.sockets.sockets.size === 0);
  slow = false;
  const second = await connect(as("ann"));
  const answer = second.emitWithAck("order", { mid: "a" });
  open();
  assert.deepEqual(await answer, { ok: true, number: 1 });
  assert.equal(orders.length, 1);
});

test("a message that nobody listens for yet is not used up", async (t) => {
  const orders = [];
  let serverSocket;
  const { connect } = await start(
    t,
    { events: order },
    {
      onConnection: (socket) => {
        socket.on("settled", (acknowledge) => acknowledge());
        serverSocket = socket;
      },
    },
  );
  const client = await connect();
  client.emit("order", { mid: "a" });
  await settled(client);
  counting(orders)(serverSocket);
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true, number: 1 });
});

test("a lease is renewed while a handler of gateway.on runs", async (t) => {
  let runs = 0;
  const { connect } = await start(
    t,
    { events: { order: { dedup: { lease: 150 } } } },
    {
      onConnection: (socket, gateway) => {
        gateway.on(socket, "order", async () => {
          runs += 1;
          await pause(500);
          return { runs };
        });
      },
    },
  );
  const client = await connect();
  const first = client.emitWithAck("order", { mid: "a" });
  await pause(300);
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { runs: 1 });
  assert.deepEqual(await first, { runs: 1 });
});

test("a handler that never acknowledges holds its message for one lease", async (t) => {
  let runs = 0;
  const { connect } = await start(
    t,
    { events: { order: { dedup: { lease: 60 } } } },
    {
      onConnection: (socket) => {
        socket.on("order", (_, acknowledge) => {
          runs += 1;
          if (runs === 2) acknowledge({ runs });
        });
      },
    },
  );
  const client = await connect();
  client.emit("order", { mid: "a" }, () => assert.fail("the first is never acknowledged"));
  for (let copy = 0; copy < 2; copy += 1) {
    assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { runs: 2 });
  }
});

/** Two gateways that share a database, and a handler that waits until it is told to go on. */
async function twoProcesses(t) {
  const database = new Database();
  const { opened, open } = gate();
  let runs = 0;
  const node = () =>
    start(
      t,
      { store: database.store(), events: order },
      {
        before: believe,
        onConnection: (socket, gateway) => {
          gateway.on(socket, "order", async () => {
            runs += 1;
            await opened;
            return { runs };
          });
        },
      },
    );
  const started = () => until(() => runs === 1);
  return { database, here: await node(), there: await node(), open, started };
}

test("two processes that share a store handle a message once, and both answer it", async (t) => {
  const { here, there, open, started } = await twoProcesses(t);
  const first = (await here.connect(as("ann"))).emitWithAck("order", { mid: "a" });
  await started();
  const second = (await there.connect(as("ann"))).emitWithAck("order", { mid: "a" });
  await pause(30);
  open();
  assert.deepEqual(await Promise.all([first, second]), [{ runs: 1 }, { runs: 1 }]);
});

test("copies that wait for another process ask the store once between them, and are counted once each", async (t) => {
  const COPIES = 50;
  const { database, here, there, open, started } = await twoProcesses(t);
  const duplicates = () => Number(/^tidegate_duplicates_total (\d+)$/m.exec(metrics())[1]);
  const before = duplicates();
  const first = (await here.connect(as("ann"))).emitWithAck("order", { mid: "a" });
  await started();
  const client = await there.connect(as("ann"));
  const copies = Array.from({ length: COPIES }, () => client.emitWithAck("order", { mid: "a" }));
  await until(() => duplicates() - before === COPIES);
  const asked = database.calls;
  await pause(100);
  const calls = database.calls - asked;
  assert.ok(calls > 0 && calls < 10, `${calls} calls in 100 ms`);
  open();
  assert.deepEqual(
    new Set((await Promise.all([first, ...copies])).map(({ runs }) => runs)),
    new Set([1]),
  );
  assert.equal(duplicates() - before, COPIES);
});
