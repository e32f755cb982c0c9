import { TidegateError } from "../errors.js";
import { bad, isPlainObject } from "../options.js";
import type { Handler } from "./connection.js";
import { Door } from "./door.js";
import type { GatewayOptions } from "./gateway-options.js";
import type { Server, Socket } from "./server.js";
import { Settings } from "./settings.js";

/**
 * What a client sees when a packet is refused: with an acknowledgement, ack({ ok: false, error }); without, the event
 * "tidegate:rejected" with (eventName, error). error = { code, retryAfterMs, limit, remaining }. A duplicate of a finished
 * message gets the acknowledgement that the first one got, and the handler does not run; one that arrives while the
 * first is still being handled waits for it. Packets of one socket reach the handlers in the order sent. Catch-all
 * listeners and the socket's middlewares hear of a packet once it is admitted. A handler of `socket.on` frees its
 * message by throwing at once, or by rejecting where it is an async function; any other holds it for its lease unless it
 * acknowledges.
 */
export interface Gateway {
  /**
   * Stands in front of every namespace of a Socket.IO server, those that are made later included.
   *
   * @param overrides options that differ for this server.
   */
  register(io: any, overrides?: Partial<GatewayOptions>): Gateway;
  /**
   * Wraps a handler: commits when it resolves (its value is acknowledged), releases when it throws (the client gets
   * HANDLER_FAILED without the error's text, and may retry; the socket's "error" listeners get the error). The handler
   * is not given the acknowledgement function.
   */
  on(socket: any, event: string, handler: (...args: any[]) => unknown): void;
  /**
   * Refuses what comes from now on, and decides on the packets that came before it: those whose turn has not come when
   * `timeout` is over are refused, too. Waits for the handlers of `on` that are at work, and gives back what a
   * TieredStore holds for it; copies that wait for another process are refused, and may be sent again. Called twice, it
   * is done once. On SIGTERM what a TieredStore holds goes back too; then the process ends as it would have.
   */
  close(): Promise<void>;
}

/**
 * Makes a gateway: limits and deduplication in front of the handlers of Socket.IO servers.
 *
 * @throws TidegateError "bad_policy" naming the option that makes no sense.
 * @example
 * const gateway = createGateway({
 *   events: { order: { limit: { limit: 5, window: "10s" }, dedup: { ttl: "1h" } } },
 * }).register(io);
 * io.on("connection", (socket) => {
 *   gateway.on(socket, "order", async (order) => ({ ok: true, id: await place(order) }));
 * });
 */
export function createGateway(options: GatewayOptions = {}): Gateway {
  return new SocketIoGateway(options);
}

class SocketIoGateway implements Gateway {
  readonly #options: GatewayOptions;
  readonly #settings: Settings[];
  readonly #doors = new WeakMap<Server, Door>();

  constructor(options: GatewayOptions) {
    const settings = new Settings(options);
    // Servers that differ in their rules still share one store.
    this.#options = { ...options, store: settings.store };
    this.#settings = [settings];
  }

  register(io: Server, overrides?: Partial<GatewayOptions>): Gateway {
    if (!(io?._nsps instanceof Map)) bad("bad_argument", "io", io, "a Socket.IO server");
    if (this.#doors.has(io)) {
      throw new TidegateError("bad_argument", "io is registered with this gateway already");
    }
    const door = new Door(this.#settingsWith(overrides));
    door.hang(io);
    this.#doors.set(io, door);
    return this;
  }

  on(socket: Socket, event: string, handler: Handler): void {
    const door = this.#doors.get(socket?.server);
    if (door === undefined || !door.knows(socket)) {
      bad("bad_argument", "socket", socket, "a socket of a server that is registered");
    }
    if (typeof event !== "string") bad("bad_argument", "event", event, "a string");
    if (typeof handler !== "function") bad("bad_argument", "handler", handler, "a function");
    socket.on(event, (...args) => door.connectionOf(socket).attend(event, handler, args));
  }

  async close(): Promise<void> {
    await Promise.all(this.#settings.map((settings) => settings.close()));
  }

  #settingsWith(overrides: Partial<GatewayOptions> | undefined): Settings {
    if (overrides === undefined) return this.#settings[0] as Settings;
    if (!isPlainObject(overrides)) bad("bad_policy", "overrides", overrides, "a plain object");
    const settings = new Settings({ ...this.#options, ...overrides });
    this.#settings.push(settings);
    return settings;
  }
}
