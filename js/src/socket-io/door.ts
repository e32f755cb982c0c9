import { Connection } from "./connection.js";
import type { Refused } from "./handshakes.js";
import { proceed } from "./listeners.js";
import { REJECTED } from "./packet.js";
import { type Refusal, refusal } from "./refusal.js";
import {
  type Done,
  type Incoming,
  type Namespace,
  recovers,
  type Server,
  type Socket,
} from "./server.js";
import type { Settings } from "./settings.js";

/** Ways of leaving after which Socket.IO keeps a socket for its client, where it is told to. */
const RECOVERABLE = new Set([
  ...["transport error", "transport close", "forced close", "ping timeout"],
  ...["server shutting down", "forced server close"],
]);

/** The way into a server: every socket comes through it, is let in or not, and is given its connection. */
export class Door {
  readonly #settings: Settings;
  /** The sockets that came in here, each with its connection once it has said something: many never do. */
  readonly #connections = new WeakMap<Socket, Connection | undefined>();
  /** What stands in front of `run` is one function for all sockets. */
  readonly #receive: Socket["run"];

  constructor(settings: Settings) {
    this.#settings = settings;
    const door = this;
    this.#receive = function (this: Socket, event, dispatch) {
      door.connectionOf(this).receive(event, dispatch);
    };
  }

  /** True for a socket that came in here. */
  knows(socket: Socket): boolean {
    return this.#connections.has(socket);
  }

  connectionOf(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket, this.#settings, proceed);
      this.#connections.set(socket, connection);
    }
    return connection;
  }

  /** Stands in front of the namespaces of a server: those that are, and those that come, children of dynamic ones too. */
  hang(server: Server): void {
    this.#settings.handshakes?.watch(server);
    for (const namespace of server._nsps.values()) this.#guard(namespace);
    server.on("new_namespace", (namespace) => this.#guard(namespace));
  }

  /** In front of `run`, and not among the middlewares that it runs: whoever is refused costs no authentication. */
  #guard(namespace: Namespace): void {
    const { run } = namespace;
    namespace.run = (socket, done) => {
      this.#attach(socket);
      this.#enter(socket, (ended) => run.call(namespace, socket, ended), done);
    };
    namespace.prependListener("connect", (socket) => this.#connected(socket));
  }

  #enter(socket: Socket, authenticate: (done: Done) => void, done: Done): void {
    const { handshakes } = this.#settings;
    const decided = (refused: Refused): void => {
      if (refused !== undefined) done(connectError(refused));
      else authenticate(ended);
    };
    const ended: Done = (error) => {
      if (error) handshakes?.left(socket);
      done(error);
    };
    const refused = this.#admit(socket);
    if (refused instanceof Promise) void refused.then(decided);
    else decided(refused);
  }

  #connected(socket: Socket): void {
    // Socket.IO takes a socket that it recovers past the middlewares, and so past `run`.
    if (!this.knows(socket)) {
      this.#attach(socket);
      void this.#admitLate(socket);
    }
    const { handshakes, hasOwnNames } = this.#settings;
    if (handshakes === undefined && !hasOwnNames) return;
    socket.on("disconnect", (reason: string) => this.#left(socket, reason));
  }

  /** It is too late for an error in place of the connection: the client is told, and disconnected. */
  async #admitLate(socket: Socket): Promise<void> {
    const refused = await this.#admit(socket);
    if (refused === undefined) return;
    socket.emit(REJECTED, "connect", refused);
    socket.disconnect(true);
  }

  #admit(socket: Socket): Refused | Promise<Refused> {
    const { alarm, handshakes, dryRun } = this.#settings;
    const isNoticed = alarm?.notice(socket) ?? true;
    const refused = isNoticed ? handshakes?.admit(socket) : refusal("BAD_REQUEST");
    return dryRun ? undefined : refused;
  }

  #left(socket: Socket, reason: string): void {
    this.#settings.handshakes?.left(socket);
    if (recovers(socket.server) && RECOVERABLE.has(reason)) return;
    this.#connections.get(socket)?.forget();
  }

  #attach(socket: Socket): void {
    // Another gateway stays behind this one.
    const others = socket.onevent === arrive ? socket.run : undefined;
    this.#connections.set(socket, others && new Connection(socket, this.#settings, others));
    socket.onevent = arrive;
    socket.run = this.#receive;
  }
}

/** As Socket.IO's own, except that the catch-all listeners do not hear of it yet: it may be refused. */
function arrive(this: Socket, { data = [], id }: Incoming): void {
  if (id != null) data.push(this.ack(id));
  this.dispatch(data);
}

/** What the client gets as connect_error, with the refusal as its data. */
function connectError(refused: Refusal): Error {
  return Object.assign(new Error(refused.code), { data: refused });
}
