// Stands between a client and a server, and can lose what the server answers.

import { once } from "node:events";
import { connect, createServer } from "node:net";

export class Wire {
  static async start(target) {
    const wire = new Wire(target);
    wire.#server.listen(0, "127.0.0.1");
    await once(wire.#server, "listening");
    wire.port = wire.#server.address().port;
    return wire;
  }

  /** Where new connections lead. */
  target;
  #server = createServer((client) => this.#join(client));
  #sockets = new Set();
  #losing;

  constructor(target) {
    this.target = target;
  }

  /** The next script is run, but its reply is lost together with the connection; resolves when that has happened. */
  loseReply() {
    return new Promise((lost) => {
      this.#losing = lost;
    });
  }

  /** As if `loseReply` had not been called. */
  loseNothing() {
    this.#losing = undefined;
  }

  #join(client) {
    const server = connect(this.target, "127.0.0.1");
    let lost;
    client.on("data", (bytes) => {
      if (this.#losing && /eval/i.test(bytes.toString("latin1")))
        [lost, this.#losing] = [this.#losing, undefined];
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (!lost) return client.write(bytes);
      client.destroy();
      lost();
    });
    this.#tie(client, server);
    this.#tie(server, client);
  }

  #tie(socket, other) {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#sockets.delete(socket);
      other.destroy();
    });
  }

  async stop() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }
}
