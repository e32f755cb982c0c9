import type { HeldClaim } from "../held-claim.js";
import { kept } from "./acknowledgement.js";
import type { Messages } from "./messages.js";
import type { Packet } from "./packet.js";
import { refusal } from "./refusal.js";
import type { Claimed, Ending } from "./verdict.js";

/** The longest that a timer waits; whoever waits longer asks again. */
const LONGEST_WAIT_MS = 60_000;

/** A message that was claimed and is on its way through its handler: to be committed, or released. */
export class Delivery {
  readonly key: string;
  readonly #packet: Packet;
  readonly #claim: HeldClaim;
  readonly #messages: Messages;
  /** Those who wait for it, which are few, if any. */
  #waiting: Set<(ending: Ending | undefined) => void> | undefined;
  #ended = false;
  #openSince: number | undefined;
  #awaited = false;

  constructor(packet: Packet, { key, claim, messages }: Claimed) {
    this.#packet = packet;
    this.key = key;
    this.#claim = claim;
    this.#messages = messages;
  }

  /** Whether a handler is known to be at work on it. */
  get isAwaited(): boolean {
    return this.#awaited;
  }

  /** Whether it is known what came of it. */
  get isOver(): boolean {
    return this.#ended;
  }

  /** For how long others have been able to wait for it. */
  get openForMs(): number {
    return performance.now() - (this.#openSince ?? Infinity);
  }

  /** It takes a while: whoever has a copy of it can wait for it here. */
  open(): void {
    if (this.#ended || this.#openSince !== undefined) return;
    this.#openSince = performance.now();
    this.#messages.open(this);
  }

  /** A handler took it that tells when it is through. */
  takeOn(): void {
    this.#awaited = true;
  }

  renew(): void {
    // A lease that cannot be renewed runs out; what is at work then may be run once more, as without renewal.
    void attempted(() => this.#claim.renew());
  }

  /** The handlers were called. Without an acknowledgement or a promise to wait for, that is all there will be. */
  dispatched(): void {
    if (this.#awaited || this.#packet.ack !== undefined || this.#ended) return;
    this.#end(() => this.#claim.keep(undefined), { act: "replay", args: undefined });
  }

  /** The handler is through. Throws, and stays open, when Socket.IO could not send these arguments. */
  acknowledge(args: unknown[]): void {
    if (this.#ended) return;
    const json = kept(args);
    this.#end(() => this.#claim.keep(json), { act: "replay", args });
  }

  /** Nothing came of it: it has not been seen, and may be sent again. */
  fail(): void {
    if (this.#ended) return;
    this.#end(() => this.#claim.release(), { act: "refuse", refusal: refusal("HANDLER_FAILED") });
  }

  /** Its socket left before any handler saw it: whoever waits for it may have it. */
  drop(): void {
    if (!this.#ended) this.#end(() => this.#claim.release(), undefined);
  }

  /** How it ended; undefined when it was dropped, or nothing was heard for that long. */
  ending(ms: number): Promise<Ending | undefined> {
    this.#waiting ??= new Set();
    const waiting = this.#waiting;
    return new Promise((resolve) => {
      const told = (ending: Ending | undefined): void => {
        clearTimeout(timer);
        waiting.delete(told);
        resolve(ending);
      };
      const timer = setTimeout(told, Math.min(ms, LONGEST_WAIT_MS), undefined);
      timer.unref();
      waiting.add(told);
    });
  }

  /** Tells everyone once the store knows. One that fails to know changes nothing for the client of now. */
  #end(store: () => boolean | Promise<boolean>, ending: Ending | undefined): void {
    this.#ended = true;
    const known = attempted(store);
    // A synchronous store knows already: what the handler sends next does not overtake its acknowledgement.
    if (known instanceof Promise) void this.#messages.telling(known, () => this.#tell(ending));
    else this.#tell(ending);
  }

  #tell(ending: Ending | undefined): void {
    if (this.#openSince !== undefined) this.#messages.close(this);
    if (ending !== undefined) this.#packet.end(ending);
    if (this.#waiting !== undefined) for (const told of this.#waiting) told(ending);
  }
}

/** Tells the store; what it fails to know it does not know. */
function attempted(tell: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
  try {
    const known = tell();
    return known instanceof Promise ? known.catch(() => false) : known;
  } catch {
    return false;
  }
}
