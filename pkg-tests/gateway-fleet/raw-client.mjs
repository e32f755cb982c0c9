// A client as small as can be: a WebSocket that speaks Engine.IO 4 and Socket.IO 5 by itself, so that thousands of
// them fit into one process.

import { WebSocket } from "ws";

const [OPEN, PING, PONG] = ["0", "2", "3"];
const [CONNECT, DISCONNECT, EVENT, ACK, CONNECT_ERROR] = ["40", "41", "42", "43", "44"];

export class RawClient {
  #ws;
  #nextId = 0;
  #acks = new Map();
  #resolve;
  #reject;
  #auth;
  /** Resolves when the namespace let it in; rejects with what it is refused with. */
  connected = new Promise((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });
  closed;
  /** Called with every event of the server. */
  onEvent = () => {};

  constructor(url, auth, options) {
    this.#auth = auth;
    this.#ws = new WebSocket(`${url.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`, {
      perMessageDeflate: false,
      ...options,
    });
    this.closed = new Promise((resolve) => this.#ws.once("close", resolve));
    this.#ws.on("error", (error) => this.#reject(error));
    this.#ws.on("close", () => this.#reject(new Error("closed before it was let in")));
    this.#ws.on("message", (data) => this.#receive(data.toString()));
  }

  /** Sends an event that is not to be acknowledged. */
  emit(...event) {
    this.#ws.send(`${EVENT}${JSON.stringify(event)}`);
  }

  /** Sends an event and resolves to the first argument of its acknowledgement. */
  ask(event, payload) {
    return new Promise((resolve) => {
      const id = this.#nextId++;
      this.#acks.set(id, resolve);
      this.#ws.send(`${EVENT}${id}${JSON.stringify([event, payload])}`);
    });
  }

  /** Goes as a client goes whose network fails: without a word of Socket.IO's. */
  drop() {
    this.#ws.terminate();
  }

  #receive(text) {
    const type = text[0] === "4" ? text.slice(0, 2) : text[0];
    if (type === ACK) this.#acknowledged(text.slice(2));
    else if (type === EVENT) this.onEvent(...JSON.parse(text.slice(2)));
    else if (type === OPEN) this.#ws.send(CONNECT + (this.#auth ? JSON.stringify(this.#auth) : ""));
    else if (type === PING) this.#ws.send(PONG);
    else if (type === CONNECT) this.#resolve();
    else if (type === CONNECT_ERROR) this.#reject(JSON.parse(text.slice(2)));
    else if (type === DISCONNECT) this.#ws.close();
  }

  #acknowledged(text) {
    const at = text.indexOf("[");
    const id = Number(text.slice(0, at));
    this.#acks.get(id)?.(JSON.parse(text.slice(at))[0]);
    this.#acks.delete(id);
  }
}
