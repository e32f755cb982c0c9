// What Socket.IO itself does to those who limit or deduplicate in its middlewares, and how a gateway has none of it.
// Order, lost packets, retries, recovery and addresses are in the files of those names.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { createGateway } from "tidegate/socket.io";
import { RawClient } from "../gateway-fleet/raw-client.mjs";
import { start, stillStore, until } from "./harness.mjs";

const two = { limit: 2, window: "10s" };

test("a catch-all listener does not hear of what is refused", async (t) => {
  const heard = [];
  const { store } = stillStore();
  const { connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    {
      onConnection: (socket) => {
        socket.onAny((event, ...args) => heard.push(["first", event, ...args.slice(0, 1)]));
        socket.prependAny((event) => heard.push(["before", event]));
        socket.use(([event], next) => {
          heard.push(["middleware", event]);
          next();
        });
        socket.on("chat", () => {});
        socket.on("settled", (acknowledge) => acknowledge());
      },
    },
  );
  const client = await connect();
  for (let sent = 0; sent < 4; sent += 1) client.emit("chat", sent);
  await until(() => client.rejected.length === 2);
  assert.deepEqual(heard, [
    ...[
      ["before", "chat"],
      ["first", "chat", 0],
      ["middleware", "chat"],
    ],
    ...[
      ["before", "chat"],
      ["first", "chat", 1],
      ["middleware", "chat"],
    ],
  ]);
});

test("a catch-all listener that handles what comes is in front of a copy as any other handler is", async (t) => {
  const handled = [];
  const { connect } = await start(
    t,
    { events: { order: { dedup: {} } } },
    {
      onConnection: (socket) => {
        socket.onAny((event, order, acknowledge) => {
          if (event !== "order") return;
          handled.push(order.mid);
          acknowledge({ number: handled.length });
        });
        socket.on("order", () => {});
      },
    },
  );
  const client = await connect();
  for (const mid of ["a", "a", "b"]) {
    const number = mid === "a" ? 1 : 2;
    assert.deepEqual(await client.emitWithAck("order", { mid }), { number });
  }
  assert.deepEqual(handled, ["a", "b"]);
});

test("of two gateways each has its say, and a catch-all listener hears of a packet once", async (t) => {
  const heard = [];
  const { store } = stillStore();
  const { io, connect } = await start(
    t,
    { store, events: { chat: { limit: two } } },
    {
      before: (io) =>
        createGateway({
          store,
          prefix: "b",
          events: { chat: { limit: { ...two, limit: 1 } } },
        }).register(io),
      onConnection: (socket) => {
        socket.onAny((event) => heard.push(event));
        socket.on("chat", (_, acknowledge) => acknowledge({ ok: true }));
      },
    },
  );
  assert.ok(io);
  const client = await connect();
  const answers = [];
  for (let sent = 0; sent < 3; sent += 1) answers.push(await client.emitWithAck("chat", sent));
  assert.deepEqual(
    answers.map(({ ok }) => ok),
    [true, false, false],
  );
  assert.deepEqual(heard, ["chat"]);
});

test("what stands in an acknowledgement's place is an argument; without one, handlers of gateway.on are none the wiser", async (t) => {
  const handled = [];
  const { url } = await start(
    t,
    { events: { order: { limit: two, dedup: {} } } },
    {
      onConnection: (socket, gateway) =>
        gateway.on(socket, "order", (...args) => {
          handled.push(args);
          return { number: handled.length };
        }),
    },
  );
  const client = new RawClient(url);
  t.after(() => client.drop());
  await client.connected;
  const rejected = [];
  client.onEvent = (...event) => rejected.push(event);
  client.emit("order", { mid: "a" }, { ack: true });
  client.emit("order", { mid: "b" }, 7);
  client.emit("order", { mid: "c" }, null);
  await until(() => rejected.length === 1);
  assert.deepEqual(handled, [
    [{ mid: "a" }, { ack: true }],
    [{ mid: "b" }, 7],
  ]);
  const [[event, name, { code }]] = rejected;
  assert.deepEqual([event, name, code], ["tidegate:rejected", "order", "RATE_LIMITED"]);
  assert.deepEqual(await client.ask("order", { mid: "a" }), { number: 1 }, "and is remembered");
});

test("code of the server that fails stops nothing, frees its message, and is reported as it would be", () => {
  const script = join(import.meta.dirname, "throwing.mjs");
  const { stdout, stderr } = spawnSync(process.execPath, [script], {
    encoding: "utf8",
    timeout: 15_000,
  });
  const lines = stdout.split("\n").filter(Boolean);
  const isReport = (line) => /^(uncaughtException|unhandledRejection): /.test(line);
  assert.deepEqual(
    lines.filter(isReport).sort(),
    [
      "uncaughtException: acknowledge is not a function",
      "uncaughtException: in a handler",
      "uncaughtException: in a middleware",
      "unhandledRejection: in an async handler",
      "unhandledRejection: in one of two handlers",
    ],
    stderr,
  );
  assert.deepEqual(
    lines.filter((line) => !isReport(line)),
    [
      "after the middleware: true",
      ...["order a: HANDLER_FAILED", "order a: true"],
      ...["later a: HANDLER_FAILED", "later a: true"],
      ...["both a: true", "heeded a: true", "order b: true"],
    ],
  );
});
