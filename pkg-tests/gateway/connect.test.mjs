import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { io as connectTo } from "socket.io-client";
import { createGateway } from "tidegate/socket.io";
import {
  connected,
  Database,
  gate,
  recovery,
  refusedBy,
  Server,
  start,
  stillStore,
  until,
} from "./harness.mjs";

const two = { limit: 2, window: "10s" };
const REFUSED = { code: "RATE_LIMITED", retryAfterMs: 5_000, limit: 2, remaining: 0 };
/** A client behind a proxy that tells where it comes from. */
const from = (...hops) => ({ extraHeaders: { "x-forwarded-for": hops.join(", ") } });

/** How many of so many clients get in. */
async function letIn(dial, clients) {
  const entered = [];
  for (const options of clients) {
    const client = dial(options);
    entered.push(
      await connected(client).then(
        () => true,
        () => false,
      ),
    );
  }
  return entered;
}

test("too many handshakes are refused before authentication, with the refusal as the error's data", async (t) => {
  let authentications = 0;
  const { store, advance } = stillStore();
  const { connect, dial } = await start(
    t,
    { store, connect: { limit: two } },
    {
      // Before the gateway, which is asked first all the same.
      early: (io) => {
        io.use((_, next) => {
          authentications += 1;
          next();
        });
      },
    },
  );
  // By long polling and an upgrade, which is many requests.
  for (let at = 0; at < 2; at += 1) await connect({ transports: ["polling", "websocket"] });
  const refused = await refusedBy(dial());
  assert.equal(refused.message, "RATE_LIMITED");
  assert.deepEqual(refused.data, REFUSED);
  assert.equal(authentications, 2);
  advance(5_000);
  await connect();
  assert.equal(authentications, 3);
});

test("requests of an open session and namespaces over one connection are one handshake", async (t) => {
  const { store } = stillStore();
  const { dial } = await start(
    t,
    { store, connect: { limit: two } },
    {
      before: (io) => io.of("/chat"),
      onConnection: (socket) => socket.on("chat", (acknowledge) => acknowledge()),
    },
  );
  const client = dial({ transports: ["polling"] });
  await connected(client);
  for (let at = 0; at < 10; at += 1) await client.emitWithAck("chat");
  await connected(client.io.socket("/chat"));
  assert.deepEqual(await letIn(dial, [{}, {}]), [true, false]);
});

test("coming back to a namespace over the same connection is authenticated, and counted, again", async (t) => {
  const { store } = stillStore();
  let authentications = 0;
  const { dial, io } = await start(
    t,
    { store, connect: { limit: two } },
    {
      before: (io) => {
        io.of("/chat").use((_, next) => {
          authentications += 1;
          next();
        });
      },
    },
  );
  const client = dial();
  await connected(client);
  const chat = client.io.socket("/chat");
  const entered = [];
  for (let at = 0; at < 3; at += 1) {
    if (at > 0) chat.connect();
    entered.push(
      await connected(chat).then(
        () => true,
        () => false,
      ),
    );
    chat.disconnect();
    await until(() => io.of("/chat").sockets.size === 0);
  }
  assert.deepEqual(entered, [true, true, false]);
  assert.equal(authentications, 2);
});

test("sessions that never join a namespace are counted", async (t) => {
  const { store } = stillStore();
  const { dial, url } = await start(t, { store, connect: { limit: two } });
  for (let at = 0; at < 2; at += 1) {
    const response = await fetch(`${url}/socket.io/?EIO=4&transport=polling`);
    assert.equal(response.status, 200);
    await response.text();
  }
  assert.deepEqual((await refusedBy(dial())).data, REFUSED);
});

test("a server that has been listening is watched, too", async (t) => {
  const { store } = stillStore();
  const http = createServer().listen(0);
  const io = new Server(http);
  const gateway = createGateway({ store, connect: { limit: { limit: 1, window: "10s" } } });
  gateway.register(io);
  t.after(async () => {
    await io.close();
    await gateway.close();
  });
  const url = `http://127.0.0.1:${http.address().port}`;
  const session = await fetch(`${url}/socket.io/?EIO=4&transport=polling`);
  await session.text();
  const client = connectTo(url, { forceNew: true });
  t.after(() => client.disconnect());
  assert.equal((await refusedBy(client)).data.code, "RATE_LIMITED");
});

test("whose word is taken for where a client comes from", async (t) => {
  const trusting = async (trustProxy) => {
    const { store } = stillStore();
    const limit = { limit: 1, window: "10s" };
    return (await start(t, { store, trustProxy, connect: { limit } })).dial;
  };
  // Nobody's: the peer is the same for all.
  assert.deepEqual(await letIn(await trusting(), [from("192.0.2.1"), from("192.0.2.2")]), [
    true,
    false,
  ]);
  assert.deepEqual(await letIn(await trusting(0), [from("192.0.2.1"), from("192.0.2.2")]), [
    true,
    false,
  ]);
  // One proxy: the last entry is what it saw, whatever stands before it.
  const one = [
    from("198.51.100.1", "192.0.2.1"),
    from("198.51.100.2", "192.0.2.1"),
    from("192.0.2.2"),
  ];
  assert.deepEqual(await letIn(await trusting(1), one), [true, false, true]);
  // Two: fewer hops than that, or an entry that is no address, and it is the peer.
  const forged = [from("192.0.2.1"), from("192.0.2.2"), from("junk", "192.0.2.3"), {}];
  assert.deepEqual(await letIn(await trusting(2), forged), [true, false, false, false]);
  // By address: past the proxies that are known, and no further.
  const known = await trusting(["127.0.0.0/8", "2001:db8:aaaa::/48", "10.1.2.3"]);
  const hops = [
    from("192.0.2.1", "10.1.2.3", "2001:db8:aaaa:1::9"),
    from("203.0.113.7", "192.0.2.1", "10.1.2.3"),
    from("203.0.113.8", "192.0.2.1", "::ffff:10.1.2.3"),
    from("192.0.2.1", "10.1.2.4"),
    from("192.0.2.1", "2001:db8:aaab::1"),
  ];
  assert.deepEqual(await letIn(known, hops), [true, false, false, true, true]);
  assert.deepEqual(await letIn(await trusting(["10.0.0.0/8"]), [from("192.0.2.1"), {}]), [
    true,
    false,
  ]);
  assert.deepEqual(
    await letIn(await trusting(["0.0.0.0/0"]), [from("192.0.2.1"), from("192.0.2.2")]),
    [true, true],
  );
});

test("an IPv6 network is one client, and IPv4 in IPv6 is IPv4", async (t) => {
  const { store } = stillStore();
  const { dial } = await start(t, {
    store,
    trustProxy: 1,
    connect: { limit: { limit: 1, window: "10s" } },
  });
  const clients = [
    "2001:db8:1:2::1",
    "2001:DB8:1:2:ffff::2",
    "[2001:db8:1:2::3]:4711",
    "2001:db8:1:3::1",
    "::ffff:192.0.2.1",
    "192.0.2.1",
    "192.0.2.1:4711",
  ].map((address) => from(address));
  assert.deepEqual(await letIn(dial, clients), [true, false, false, true, true, false, false]);
});

test("an address stands in for the user in events as well, by the same word", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, trustProxy: 1, events: { chat: { limit: { limit: 1, window: "10s" } } } },
    { onConnection: (socket) => socket.on("chat", (acknowledge) => acknowledge({ ok: true })) },
  );
  const oks = [];
  for (const hop of ["192.0.2.1", "192.0.2.1", "192.0.2.2"]) {
    oks.push((await (await connect(from(hop))).emitWithAck("chat")).ok);
  }
  assert.deepEqual(oks, [true, false, true]);
});

test("a client whose address is not known has a budget of its own", async (t) => {
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: { limit: 1, window: "10s" } } } },
    {
      // As it is with WebTransport, and behind a Unix socket.
      before: (io) =>
        io.engine.on("connection", (conn) => Object.assign(conn, { remoteAddress: undefined })),
      onConnection: (socket) => socket.on("chat", (acknowledge) => acknowledge({ ok: true })),
    },
  );
  for (let at = 0; at < 2; at += 1) {
    const client = await connect();
    assert.equal((await client.emitWithAck("chat")).ok, true);
    assert.equal((await client.emitWithAck("chat")).ok, false);
  }
});

test("handshakes by an identity of the user's own", async (t) => {
  const { store } = stillStore();
  const identify = ({ handshake }) => {
    if (handshake.auth.token === "broken") throw new Error("broken");
    return handshake.auth.token;
  };
  const { dial } = await start(t, { store, connect: { limit: two, identify } });
  const by = (token) => ({ auth: { token } });
  assert.deepEqual(await letIn(dial, ["a", "a", "a", "b"].map(by)), [true, true, false, true]);
  for (const nonsense of [undefined, "", 7, {}, "broken"]) {
    const { data } = await refusedBy(dial(by(nonsense)));
    assert.deepEqual(data, { code: "BAD_REQUEST", retryAfterMs: 0, limit: 0, remaining: 0 });
  }
});

test("so many sockets of one identity are open, however they went", async (t) => {
  let authentication = (_, next) => next();
  const { dial, io } = await start(
    t,
    { connect: { limit: { limit: 1_000, window: "1s" }, maxSockets: 2 } },
    {
      before: (io) => {
        io.use((socket, next) => authentication(socket, next));
        io.of("/other");
      },
    },
  );
  const [first, second] = [dial(), dial()];
  await Promise.all([connected(first), connected(second)]);
  const { data } = await refusedBy(dial());
  assert.deepEqual(data, { code: "RATE_LIMITED", retryAfterMs: 1_000, limit: 2, remaining: 0 });
  await connected(dial({}, "/other"));
  // One leaves: there is room for one, and no more after many were refused by others than the gateway.
  first.disconnect();
  await until(() => io.sockets.sockets.size === 1);
  authentication = (_, next) => next(new Error("who are you?"));
  for (let at = 0; at < 5; at += 1) assert.equal((await refusedBy(dial())).message, "who are you?");
  // Nor after many left while they were asked.
  const { opened, open } = gate();
  let asked = 0;
  authentication = async (_, next) => {
    asked += 1;
    await opened;
    next();
  };
  for (let at = 0; at < 5; at += 1) {
    const client = dial();
    await until(() => asked === at + 1);
    client.io.engine.close();
    await until(() => io.engine.clientsCount <= 3);
  }
  open();
  authentication = (_, next) => next();
  await connected(dial());
  await refusedBy(dial());
});

test("who leaves while the store is asked takes no place for ever", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  database.before = () => opened;
  const connect = { limit: { limit: 1_000, window: "1s" }, maxSockets: 1 };
  const { dial, io } = await start(t, { store: database.store(), timeout: "5s", connect });
  for (let at = 0; at < 3; at += 1) {
    const client = dial();
    await until(() => client.io.engine?.readyState === "open" && database.calls === at + 1);
    // Its request to enter is on the way when it leaves.
    await pause(20);
    client.io.engine.close();
    await until(() => io.engine.clientsCount === 0);
  }
  open();
  await pause(50);
  await connected(dial());
  await refusedBy(dial());
});

test("many at once do not slip through while they are authenticated", async (t) => {
  const { dial } = await start(
    t,
    { connect: { limit: { limit: 1_000, window: "1s" }, maxSockets: 3 } },
    { before: (io) => io.use((_, next) => pause(20).then(() => next())) },
  );
  const clients = Array.from({ length: 12 }, () => dial());
  const entered = await Promise.allSettled(clients.map(connected));
  assert.equal(entered.filter(({ status }) => status === "fulfilled").length, 3);
});

test("a store that fails: each policy, as the client sees it", async (t) => {
  for (const [onStoreError, expected] of [
    ["deny", [false, false]],
    ["allow", [true, true]],
    ["local", [true, false]],
  ]) {
    const database = new Database();
    database.before = () => Promise.reject(new Error("down"));
    const { dial } = await start(t, {
      store: database.store(),
      timeout: 50,
      onStoreError,
      connect: { limit: { limit: 1, window: "10s" } },
    });
    assert.deepEqual(await letIn(dial, [{}, {}]), expected, onStoreError);
    if (onStoreError === "deny") {
      assert.equal((await refusedBy(dial())).data.code, "STORE_UNAVAILABLE");
    }
  }
});

test("a slow store is waited for", async (t) => {
  const database = new Database();
  database.before = () => pause(20);
  const { dial } = await start(t, {
    store: database.store(),
    timeout: "5s",
    connect: { limit: { limit: 1, window: "10s" } },
  });
  assert.deepEqual(await letIn(dial, [{}, {}]), [true, false]);
});

test(
  "a socket that is recovered past the middlewares is counted all the same",
  recovery,
  async (t) => {
    const { store } = stillStore();
    const { dial } = await start(
      t,
      { store, connect: { limit: two } },
      {
        io: { connectionStateRecovery: {} },
        onConnection: (socket) => socket.emit("hello"),
      },
    );
    const client = dial({ reconnection: true, reconnectionDelay: 1 });
    await connected(client);
    const drop = async () => {
      const again = once(client, "connect");
      client.io.engine.close();
      await again;
      assert.ok(client.recovered);
    };
    await drop();
    assert.deepEqual(client.rejected, []);
    const reason = new Promise((resolve) => {
      client.on("disconnect", (why) => why === "io server disconnect" && resolve(why));
    });
    await drop();
    await reason;
    assert.deepEqual(client.rejected[0].slice(0, 2), ["connect", REFUSED]);
  },
);
