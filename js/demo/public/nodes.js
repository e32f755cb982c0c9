import { io } from "/socket.io/socket.io.esm.min.js";

/** The processes of a fleet: a connection to each, and what each has handled for this page. */
export class Nodes {
  #element;
  #auth;
  #nodes = [];
  #next = 0;
  #alarms = 0;

  constructor(element, auth) {
    this.#element = element;
    this.#auth = auth;
  }

  /** Connects to so many nodes. */
  open(count) {
    if (this.#nodes.length > 0) return;
    this.#element.hidden = false;
    for (let number = 1; number <= count; number += 1) this.#add(number);
  }

  #add(number) {
    const options = { auth: this.#auth, query: { node: number }, forceNew: true };
    const socket = io({ ...options, transports: ["websocket"] });
    const item = document.createElement("li");
    const [name, state, handled] = ["b", "span", "span"].map((tag) => document.createElement(tag));
    name.textContent = `Node ${number}`;
    item.append(name, state, handled);
    this.#element.querySelector("ul").append(item);
    const node = { socket, handled, count: 0 };
    this.#nodes.push(node);
    const show = () => {
      state.textContent = socket.connected ? "connected" : "away";
    };
    socket.on("connect", show).on("disconnect", show);
    show();
    this.#show(node);
  }

  /** The node whose turn it is to get a message; undefined where there is no fleet. */
  turn() {
    const node = this.#nodes[this.#next];
    this.#next = (this.#next + 1) % Math.max(this.#nodes.length, 1);
    return node?.socket;
  }

  /** A node has handled a message. */
  handled(number) {
    const node = this.#nodes[number - 1];
    if (node === undefined) return;
    node.count += 1;
    this.#show(node);
  }

  alarm({ node, count }) {
    this.#alarms += 1;
    const text = `Alarm ${this.#alarms}: ${count} messages and more within 10 s, told of once, by node ${node}.`;
    this.#element.querySelector("[role=alert]").textContent = text;
  }

  #show({ handled, count }) {
    handled.textContent = `${count} handled`;
  }
}
