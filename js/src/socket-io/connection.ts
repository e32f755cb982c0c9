import { Delivery } from "./delivery.js";
import { Denials } from "./denials.js";
import { Judge } from "./judge.js";
import { callListeners } from "./listeners.js";
import { Packet, type Receipt } from "./packet.js";
import { type Refusal, refusal } from "./refusal.js";
import { type Done, report, type Socket } from "./server.js";
import type { Settings } from "./settings.js";
import type { Verdict } from "./verdict.js";

/** A handler of the user that answers what is to be acknowledged, or a promise of it. */
export type Handler = (...args: any[]) => unknown;

type Waiting = Extract<Verdict, { act: "wait" }>;

/** A packet whose turn has not come, and what becomes of it where that is being asked already. */
interface Queued {
  readonly packet: Packet;
  readonly verdict: Verdict | Promise<Verdict> | undefined;
}

/**
 * One socket: its packets reach the handlers in the order sent, however long the store takes for each.
 *
 * It stands in front of `run`, which takes every packet through the socket's middlewares, and not among those; the
 * catch-all listeners, which Socket.IO calls before it, are called behind it. So nothing of the user's runs for a
 * packet that is refused, and it is known what became of a packet that was not.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #settings: Settings;
  readonly #run: Socket["run"];
  #judge: Judge | undefined;
  #denials: Denials | undefined;
  /** Packets behind the one that waits for its verdict; undefined while there is none. */
  #queue: Queued[] | undefined;
  /** Duplicates that wait for the first to be handled. */
  #waiting = 0;
  /** What is being dispatched just now. */
  #current: Delivery | undefined;

  /** `run` is what the packets go on to. */
  constructor(socket: Socket, settings: Settings, run: Socket["run"]) {
    this.#socket = socket;
    this.#settings = settings;
    this.#run = run;
  }

  /** Calls a handler, waits for it where it makes one wait, and tells what came of it. */
  attend(event: string, handler: Handler, args: unknown[]): void {
    const delivery = this.#current;
    delivery?.takeOn();
    const receipt =
      delivery ?? new Packet(this.#socket, [event, ...args], () => {}, this.#settings.acks);
    try {
      const value = handler.apply(this.#socket, withoutAck(args));
      if (isThenable(value)) void this.#answerLater(receipt, value);
      else answer(receipt, value);
    } catch (error) {
      this.#failed(receipt, error);
    }
  }

  async #answerLater(receipt: Receipt, value: PromiseLike<unknown>): Promise<void> {
    try {
      answer(receipt, await value);
    } catch (error) {
      this.#failed(receipt, error);
    }
  }

  #failed(receipt: Receipt, error: unknown): void {
    receipt.fail();
    report(this.#socket, error);
  }

  /** The socket is gone for good. */
  forget(): void {
    void this.#judge?.forget();
  }

  receive(event: unknown[], dispatch: Done): void {
    // Socket.IO is going to drop it, so nothing is charged.
    if (!this.#socket.connected) return;
    const packet = new Packet(this.#socket, event, dispatch, this.#settings.acks);
    const isNoticed = this.#settings.alarm?.notice(this.#socket) ?? true;
    this.#judge ??= new Judge(this.#socket, this.#settings);
    if (this.#settings.dryRun) {
      void this.#judge.rehearse(packet);
      this.#pass(packet);
      return;
    }
    const refused = isNoticed ? this.#unheard(packet) : refusal("BAD_REQUEST");
    if (refused !== undefined) this.#refuse(packet, refused);
    else if (this.#queue === undefined) this.#decide(packet, this.#judge);
    else {
      const isAskedNow = this.#settings.pipelines;
      this.#queue.push({ packet, verdict: isAskedNow ? this.#judge.judge(packet) : undefined });
    }
  }

  /** Why nothing is asked about a packet; undefined where it is. */
  #unheard({ name }: Packet): Refusal | undefined {
    const { isClosing, rules, synchronous, queueLimit, timeoutMs } = this.#settings;
    if (isClosing && rules.of(name) !== undefined) return refusal("STORE_UNAVAILABLE", timeoutMs);
    // Nobody waits for a synchronous store: behind it is only what arrived in the same moment.
    if (this.#queue === undefined || synchronous) return undefined;
    return this.#queue.length + 1 >= queueLimit ? refusal("OVERLOADED", timeoutMs) : undefined;
  }

  /** In the same tick where the store can; else behind it, with all that comes meanwhile. */
  #decide(packet: Packet, judge: Judge): void {
    const verdict = judge.judge(packet);
    if (verdict instanceof Promise) void this.#drain(packet, verdict, judge);
    else this.#carryOut(packet, verdict);
  }

  async #drain(first: Packet, verdict: Promise<Verdict>, judge: Judge): Promise<void> {
    const queue: Queued[] = [];
    this.#queue = queue;
    this.#settings.deciding.begin();
    this.#carryOutLater(first, await verdict);
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { packet } = next;
      if (next.verdict !== undefined) this.#carryOutLater(packet, await next.verdict);
      else if (this.#socket.connected) this.#carryOutLater(packet, await judge.judge(packet));
    }
    this.#queue = undefined;
    this.#settings.deciding.end();
  }

  /** What a middleware of the user throws is thrown as Socket.IO would have it, and leaves the queue alone. */
  #carryOutLater(packet: Packet, verdict: Verdict): void {
    try {
      this.#carryOut(packet, verdict);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }

  #carryOut(packet: Packet, verdict: Verdict): void {
    if (!this.#socket.connected) release(packet, verdict);
    else if (verdict.act === "deliver") this.#deliver(packet, new Delivery(packet, verdict));
    else if (verdict.act === "pass") this.#pass(packet);
    else if (verdict.act === "wait") void this.#wait(packet, verdict);
    else if (verdict.act === "refuse") this.#refuse(packet, verdict.refusal);
    else packet.end(verdict);
  }

  #pass({ event, dispatch }: Packet): void {
    this.#run.call(this.#socket, event, dispatch);
  }

  #deliver(packet: Packet, delivery: Delivery): void {
    packet.handOver(delivery);
    let isThrough = false;
    try {
      this.#run.call(this.#socket, packet.event, (error) => {
        isThrough = true;
        if (error) {
          delivery.fail();
          packet.dispatch(error);
        } else this.#dispatch(packet, delivery);
      });
    } catch (error) {
      delivery.fail();
      throw error;
    }
    if (!isThrough) delivery.open();
  }

  /**
   * Calls the handlers as Socket.IO would, in a tick of its own and only if the socket is still there; so they can be
   * told which message theirs is, and it is known when one of them throws.
   */
  #dispatch(packet: Packet, delivery: Delivery): void {
    process.nextTick(() => {
      if (!this.#socket.connected) {
        delivery.drop();
        return;
      }
      this.#current = delivery;
      try {
        callListeners(this.#socket, packet.event, delivery);
        delivery.dispatched();
        delivery.open();
      } catch (error) {
        delivery.fail();
        throw error;
      } finally {
        this.#current = undefined;
      }
    });
  }

  /** Outside the queue: what was sent behind a duplicate does not wait for the handler of the first. */
  async #wait(packet: Packet, { key, messages, retryAfterMs }: Waiting): Promise<void> {
    if (this.#waiting >= this.#settings.queueLimit) {
      this.#refuse(packet, refusal("OVERLOADED", this.#settings.timeoutMs));
      return;
    }
    this.#waiting += 1;
    const verdict = await messages.settled(key, retryAfterMs, () => this.#socket.connected);
    this.#waiting -= 1;
    if (verdict !== undefined) this.#carryOutLater(packet, verdict);
  }

  #refuse(packet: Packet, refused: Refusal): void {
    packet.refuse(refused);
    const { denialLimit } = this.#settings;
    if (refused.code !== "RATE_LIMITED" || denialLimit === undefined) return;
    this.#denials ??= new Denials(denialLimit);
    if (this.#denials.add(performance.now())) this.#socket.disconnect(true);
  }
}

/** What a handler returned is the acknowledgement. */
function answer(receipt: Receipt, value: unknown): void {
  receipt.acknowledge(value === undefined ? [] : [value]);
}

/** Nobody is there to be told; a claim is given back, for the message to be handled when it is sent again. */
function release(packet: Packet, verdict: Verdict): void {
  if (verdict.act === "deliver") new Delivery(packet, verdict).drop();
}

/** The arguments without the acknowledgement, which is not the handler's to call. */
function withoutAck(args: unknown[]): unknown[] {
  return typeof args.at(-1) === "function" ? args.slice(0, -1) : args;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}
