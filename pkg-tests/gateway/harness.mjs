// A real Socket.IO server with a gateway in front of it, and real clients over loopback.

import { once } from "node:events";
import { createServer } from "node:http";
import { io as connectTo } from "socket.io-client";
import { MemoryStore, storeFrom } from "tidegate";
import { createGateway } from "tidegate/socket.io";

/** Another release of Socket.IO's server under its own name, where a suite asks for one. */
export const { Server } = await import(process.env.SOCKET_IO ?? "socket.io");

/** For tests of what came to Socket.IO with 4.6: none with the oldest release. */
export const recovery = { skip: process.env.SOCKET_IO !== undefined };

/**
 * Starts a server, which is closed with all its clients when the test ends. `early` gets it before the gateway is
 * registered, `before` afterwards, and `onConnection` every socket.
 */
export async function start(t, options, wishes = {}) {
  const { io: serverOptions, overrides, early, before, onConnection } = wishes;
  const http = createServer();
  const io = new Server(serverOptions);
  early?.(io);
  const gateway = createGateway(options).register(io, overrides);
  io.attach(http, { serveClient: false });
  before?.(io, gateway);
  if (onConnection) io.on("connection", (socket) => onConnection(socket, gateway));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const url = `http://127.0.0.1:${http.address().port}`;
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.disconnect();
    await io.close();
    await gateway.close();
  });

  /** A client that does not wait to be connected. */
  const dial = (clientOptions = {}, namespace = "/") => {
    const client = connectTo(url + namespace, {
      transports: ["websocket"],
      forceNew: true,
      reconnection: false,
      ...clientOptions,
    });
    client.rejected = [];
    client.on("tidegate:rejected", (...rejected) => client.rejected.push(rejected));
    clients.push(client);
    return client;
  };
  const connect = async (clientOptions, namespace) => {
    const client = dial(clientOptions, namespace);
    await connected(client);
    return client;
  };
  return { io, gateway, url, dial, connect };
}

/** Authentication that believes what it is told. */
export function believe(io) {
  io.use((socket, next) => {
    if (socket.handshake.auth.user !== undefined) socket.data.userId = socket.handshake.auth.user;
    next();
  });
}

export const as = (user) => ({ auth: { user } });

export async function connected(client) {
  if (client.connected) return;
  await new Promise((resolve, reject) => {
    client.once("connect", resolve);
    client.once("connect_error", reject);
  });
}

/** The error that a client is refused its connection with. */
export function refusedBy(client) {
  return new Promise((resolve, reject) => {
    client.once("connect_error", resolve);
    client.once("connect", () => reject(new Error("the client was let in")));
  });
}

/** Resolves when everything that the client sent before has reached the server and been answered. */
export const settled = (client) => client.emitWithAck("settled");

/** A memory store whose clock stands still until it is told otherwise. */
export function stillStore(options) {
  const clock = { now: 1_000_000 };
  const store = new MemoryStore({ ...options, now: () => clock.now });
  const advance = (ms) => {
    clock.now += ms;
  };
  return { store, advance };
}

/** A database with a conditional write that answers when and how the test wants. */
export class Database {
  values = new Map();
  /** Awaited before every answer: a promise, or a function of the method and the key that answers one. */
  before = () => undefined;
  calls = 0;

  async get(key) {
    this.calls += 1;
    await this.before("get", key);
    return this.values.get(key) ?? null;
  }

  async compareAndSet(key, expected, next) {
    this.calls += 1;
    await this.before("compareAndSet", key);
    if ((this.values.get(key) ?? null) !== expected) return false;
    this.values.set(key, next);
    return true;
  }

  store() {
    return storeFrom(this);
  }
}

/** A promise, and the way to resolve it. */
export function gate() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Resolves once the condition holds; fails loudly when it never does. */
export async function until(condition, what = condition.toString()) {
  const deadline = Date.now() + 5_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
