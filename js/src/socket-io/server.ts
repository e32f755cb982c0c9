/** What the gateway uses of Socket.IO, by shape: nothing of it is imported. */

/** Ends a chain of middlewares, with what went wrong where something did. */
export type Done = (error?: unknown) => void;

/** A connection of the engine: what carries the sockets of one client. */
export interface Conn {
  /** The request of the handshake; WebTransport has none. */
  readonly request?: { readonly headers: Record<string, string | string[] | undefined> } | null;
  readonly remoteAddress?: string | undefined;
  readonly readyState: string;
  once(event: "close", listener: () => void): unknown;
}

export interface Engine {
  on(event: "connection", listener: (conn: Conn) => void): unknown;
}

export interface Server {
  readonly _nsps: Map<string, Namespace>;
  readonly engine?: Engine;
  readonly opts?: { readonly connectionStateRecovery?: unknown };
  bind(engine: Engine): unknown;
  on(event: "new_namespace", listener: (namespace: Namespace) => void): unknown;
}

export interface Namespace {
  readonly name: string;
  /** Takes a socket through the middlewares of the namespace. */
  run(socket: Socket, done: Done): void;
  prependListener(event: "connect", listener: (socket: Socket) => void): unknown;
}

/** An event as a client sends it; with a number where it wants to be acknowledged. */
export interface Incoming {
  readonly data?: unknown[];
  readonly id?: number;
}

export interface Socket {
  readonly id: string;
  readonly connected: boolean;
  readonly recovered?: boolean;
  readonly data: any;
  readonly conn: Conn;
  readonly nsp: Namespace;
  readonly server: Server;
  readonly volatile: Socket;
  /** Takes what a client sent to the catch-all listeners, and on to `dispatch`. */
  onevent(packet: Incoming): void;
  /** Makes the function that acknowledges a packet. */
  ack(id: number): (...args: unknown[]) => void;
  dispatch(event: unknown[]): void;
  /** Takes a packet through the middlewares of the socket; what follows dispatches it in the next tick. */
  run(event: unknown[], done: Done): void;
  on(event: string, listener: (...args: any[]) => void): unknown;
  emit(event: string, ...args: unknown[]): unknown;
  listeners(event: string): ((...args: any[]) => void)[];
  listenerCount(event: string): number;
  listenersAny(): ((...args: any[]) => void)[];
  rawListeners(event: string): ((...args: any[]) => unknown)[];
  disconnect(close?: boolean): unknown;
}

/** True where the server may give a client its socket back after a short absence. */
export function recovers(server: Server): boolean {
  return Boolean(server.opts?.connectionStateRecovery);
}

/** Tells the socket's "error" listeners of a mistake in the server's own code, which the client is not told. */
export function report(socket: Socket, error: unknown): void {
  for (const listener of socket.listeners("error")) {
    try {
      listener.call(socket, error);
    } catch {
      // There is nobody left to tell.
    }
  }
}
