import type { Decision } from "../decision.js";
import { isCallers } from "../errors.js";
import type { Limiter } from "../limiter.js";
import { answered } from "./answer.js";
import type { ClientAddresses } from "./client-address.js";
import { identityText, keyOf } from "./identity.js";
import { type Refusal, refusal, refusalOf } from "./refusal.js";
import { type Conn, report, type Server, type Socket } from "./server.js";

/** Why there is no way in; undefined when there is. */
export type Refused = Refusal | undefined;

/** A connection whose handshake was counted, and the namespaces that it was good for. */
interface Handshake {
  readonly refused: Refused | Promise<Refused>;
  readonly namespaces: Set<string>;
}

export interface HandshakesOptions {
  readonly limiter: Limiter;
  readonly identify: ((socket: Socket) => unknown) | undefined;
  readonly maxSockets: number;
  readonly addresses: ClientAddresses;
  readonly synchronous: boolean;
  readonly onStoreError: "allow" | "deny" | "local";
  readonly retryAfterMs: number;
}

/** Nobody knows when a socket closes; a client may ask again after this. */
const SOCKETS_RETRY_MS = 1000;

/** Who may connect: handshakes within a limit, and so many sockets at a time. */
export class Handshakes {
  readonly #options: HandshakesOptions;
  readonly #counted = new WeakMap<Conn, Handshake>();
  /** Open sockets by identity, and what each socket of a connection is counted as. */
  readonly #open = new Map<string, number>();
  readonly #held = new WeakMap<Conn, Map<Socket, string>>();

  constructor(options: HandshakesOptions) {
    this.#options = options;
  }

  /**
   * Counts handshakes where they are made: once for a connection, however many requests or namespaces it has.
   * Not by a middleware of the engine, with which there is no WebTransport.
   */
  watch(server: Server): void {
    if (this.#options.identify !== undefined) return;
    const watch = (engine: NonNullable<Server["engine"]>): void => {
      engine.on("connection", (conn) => this.#handshake(conn, this.#address(conn)));
    };
    if (server.engine !== undefined) watch(server.engine);
    // A server that does not listen yet has no engine; it is given one by this.
    const { bind } = server;
    server.bind = (engine) => {
      watch(engine);
      return bind.call(server, engine);
    };
  }

  /** Why a socket may not enter its namespace; undefined when it may, and then `left` has to be told when it is gone. */
  admit(socket: Socket): Refused | Promise<Refused> {
    let identity: string;
    try {
      identity = this.#identity(socket);
    } catch (error) {
      report(socket, error);
      return refusal("BAD_REQUEST");
    }
    const refused = this.#entered(socket, identity);
    if (!(refused instanceof Promise)) return refused ?? this.#hold(socket, identity);
    return refused.then((refused) => refused ?? this.#hold(socket, identity));
  }

  /** The socket is no longer there, or was not let in by others. */
  left(socket: Socket): void {
    const held = this.#held.get(socket.conn);
    const place = held?.get(socket);
    if (place === undefined) return;
    held?.delete(socket);
    const others = (this.#open.get(place) ?? 0) - 1;
    if (others > 0) this.#open.set(place, others);
    else this.#open.delete(place);
  }

  async close(): Promise<void> {
    await this.#options.limiter.close();
  }

  #identity(socket: Socket): string {
    const { identify } = this.#options;
    if (identify === undefined) return this.#address(socket.conn);
    return keyOf("id", identityText(answered(identify(socket), "connect.identify")));
  }

  /** Those whose address is not known have one budget between them: it is no way around the limit. */
  #address(conn: Conn): string {
    return keyOf("address", this.#options.addresses.of(conn) ?? "unknown");
  }

  #entered(socket: Socket, identity: string): Refused | Promise<Refused> {
    const { conn, nsp } = socket;
    const { refused, namespaces } = this.#counted.get(conn) ?? this.#handshake(conn, identity);
    if (!namespaces.has(nsp.name)) {
      namespaces.add(nsp.name);
      return refused;
    }
    // It comes back over the same connection, and is authenticated again.
    return this.#count(identity);
  }

  #handshake(conn: Conn, identity: string): Handshake {
    const handshake = { refused: this.#count(identity), namespaces: new Set<string>() };
    this.#counted.set(conn, handshake);
    return handshake;
  }

  #count(identity: string): Refused | Promise<Refused> {
    const { limiter, synchronous } = this.#options;
    try {
      if (synchronous) return refusedBy(limiter.consumeSync(identity));
      return limiter.consume(identity).then(refusedBy, (error) => this.#undecided(error));
    } catch (error) {
      return this.#undecided(error);
    }
  }

  #undecided(error: unknown): Refused {
    const { onStoreError, retryAfterMs } = this.#options;
    const isAllowed = onStoreError === "allow" && !isCallers(error);
    return isAllowed ? undefined : refusal("STORE_UNAVAILABLE", retryAfterMs);
  }

  /** Takes one of the places that an identity has. */
  #hold(socket: Socket, identity: string): Refused {
    const { maxSockets } = this.#options;
    // A connection that closed while the store was asked tells no more, and would never give its place back.
    if (maxSockets === Infinity || socket.conn.readyState === "closed") return undefined;
    const place = `${identity}:${keyOf(socket.nsp.name)}`;
    const open = this.#open.get(place) ?? 0;
    if (open >= maxSockets) {
      return { ...refusal("RATE_LIMITED", SOCKETS_RETRY_MS), limit: maxSockets };
    }
    this.#open.set(place, open + 1);
    this.#heldBy(socket.conn).set(socket, place);
    return undefined;
  }

  /** A socket that is refused by others, or waits for them until its connection closes, is never disconnected. */
  #heldBy(conn: Conn): Map<Socket, string> {
    let held = this.#held.get(conn);
    if (held === undefined) {
      const sockets = new Map<Socket, string>();
      conn.once("close", () => {
        for (const socket of sockets.keys()) this.left(socket);
      });
      this.#held.set(conn, sockets);
      held = sockets;
    }
    return held;
  }
}

function refusedBy(decision: Decision): Refused {
  return decision.allowed ? undefined : refusalOf(decision);
}
