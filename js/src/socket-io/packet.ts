import { answered } from "./answer.js";
import { type Acks, acknowledgementOf, alreadyDone, type Refusal, refusal } from "./refusal.js";
import { type Done, recovers, report, type Socket } from "./server.js";
import type { Ending } from "./verdict.js";

/** The event that tells a client of a refusal where there is no acknowledgement to tell it in. */
export const REJECTED = "tidegate:rejected";

/** Whom a handler tells what came of a message. */
export interface Receipt {
  acknowledge(args: unknown[]): void;
  fail(): void;
}

type Acknowledge = (...args: unknown[]) => void;

/** One event of a client, as Socket.IO hands it over: its name, its arguments, and the acknowledgement. */
export class Packet {
  readonly socket: Socket;
  readonly event: unknown[];
  /** Goes on to the handlers, once the middlewares are through. */
  readonly dispatch: Done;
  /** Undefined where the client expects none, or sent something else in its place. */
  readonly ack: Acknowledge | undefined;
  /** The name of the event as listeners are found by; undefined where a client sent none. */
  readonly name: string | undefined;
  readonly #acks: Acks;
  #args: unknown[] | undefined;

  constructor(socket: Socket, event: unknown[], dispatch: Done, acks: Acks) {
    this.socket = socket;
    this.event = event;
    this.dispatch = dispatch;
    this.#acks = acks;
    const [name] = event;
    this.name = typeof name === "string" || typeof name === "number" ? String(name) : undefined;
    const last = event.length > 1 ? event[event.length - 1] : undefined;
    this.ack = typeof last === "function" ? (last as Acknowledge) : undefined;
  }

  get args(): unknown[] {
    this.#args ??= this.event.slice(1, this.ack === undefined ? undefined : -1);
    return this.#args;
  }

  /** Hands another acknowledgement to the handlers; the client's own is this packet's to call. */
  handOver(receipt: Receipt): void {
    if (this.ack === undefined) return;
    this.event[this.event.length - 1] = (...args: unknown[]) => receipt.acknowledge(args);
  }

  /** Tells the client that it was handled. Throws when Socket.IO cannot send these arguments. */
  acknowledge(args: unknown[]): void {
    this.ack?.(...args);
  }

  /** Tells the client that its handler failed, and no more of that. */
  fail(): void {
    this.refuse(refusal("HANDLER_FAILED"));
  }

  /** Tells the client what came of it. */
  end(ending: Ending): void {
    if (ending.act === "refuse") this.refuse(ending.refusal);
    else this.#answer(ending.args ?? [alreadyDone(this.#acks)]);
  }

  /** Tells the client that nothing came of it, and why. */
  refuse(refused: Refusal): void {
    if (this.ack !== undefined) this.#answer([this.#shaped(refused)]);
    else this.#notify(refused);
  }

  #answer(args: unknown[]): void {
    try {
      this.acknowledge(args);
    } catch (error) {
      report(this.socket, error);
    }
  }

  #notify(refused: Refusal): void {
    const { socket, name } = this;
    // What is kept for a client that is away, a client could fill the server's memory with.
    const sender = recovers(socket.server) ? socket.volatile : socket;
    sender.emit(REJECTED, name, refused);
  }

  #shaped(refused: Refusal): unknown {
    try {
      return answered(acknowledgementOf(refused, this.#acks), "acks");
    } catch (error) {
      report(this.socket, error);
      return acknowledgementOf(refused, "tidegate");
    }
  }
}
