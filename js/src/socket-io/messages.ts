import { type Deduplicator, duplicate, type GatewayClaim, type Look } from "../deduplicator.js";
import { isCallers } from "../errors.js";
import type { HeldClaim } from "../held-claim.js";
import { restored } from "./acknowledgement.js";
import type { Delivery } from "./delivery.js";
import { senderOf } from "./identity.js";
import { refusal } from "./refusal.js";
import { UnderWay } from "./under-way.js";
import { PASS, type Verdict } from "./verdict.js";

const RENEWALS_PER_LEASE = 3;
/** Within what a timer can be set to, whatever the lease. */
const LONGEST_RENEWAL_MS = 60_000;

/**
 * Tells what becomes of a message once its limit has decided, and has to be told that: undefined where it is not
 * admitted and nothing is known of it.
 */
export type Admission = (isAdmitted: boolean) => Verdict | undefined | Promise<Verdict | undefined>;

export interface MessagesOptions {
  readonly deduplicator: Deduplicator;
  /** Decides while the store does not; there is one where onStoreError is "local". */
  readonly local: Deduplicator | undefined;
  readonly onStoreError: "allow" | "deny" | "local";
  /** False where the store can only tell that it has seen an id. */
  readonly keepsResults: boolean;
  readonly leaseMs: number;
  /** After which it makes sense to ask a failed store again. */
  readonly retryAfterMs: number;
  readonly id: (args: unknown[]) => unknown;
}

/** The messages of one event: which ids were handled before, and which are being handled now. */
export class Messages {
  readonly #options: MessagesOptions;
  /**
   * What is being handled in this process. No Map: in one from which entries come and go, the engine keeps what is
   * gone until it collects all of the garbage.
   */
  readonly #open: Record<string, Delivery> = Object.create(null);
  #tending: NodeJS.Timeout | undefined;
  /** Those that are through, and of which the store does not know yet. */
  readonly #untold = new UnderWay();

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  /** The id of a message, as its rule finds it. */
  idOf(args: unknown[]): unknown {
    return this.#options.id(args);
  }

  /** Takes a message of the sender's to be handled, or tells what has become of it. At once where the store does. */
  claim(sender: string, key: string): Verdict | Promise<Verdict> {
    if (!this.#options.keepsResults) return this.#first(key);
    const verdict = this.#claim(sender, key);
    if (!(verdict instanceof Promise)) return told(key, verdict);
    return verdict.then((verdict) => told(key, verdict));
  }

  #claim(sender: string, key: string): Verdict | Promise<Verdict> {
    try {
      const found = this.#options.deduplicator.claimFor(sender, key);
      if (!(found instanceof Promise)) return this.#checked(key, found);
      return found.then(
        (found) => this.#checked(key, found),
        (error) => this.#withoutStore(key, error),
      );
    } catch (error) {
      return this.#withoutStore(key, error);
    }
  }

  /** Asks what comes of a message: where it has a limit, together with the decision that was asked for just before. */
  admit(sender: string, key: string, hasLimit: boolean): Admission {
    const asked = hasLimit ? this.#askAhead(key) : undefined;
    if (asked === undefined) {
      return (isAdmitted) => (isAdmitted ? this.claim(sender, key) : this.outcome(key));
    }
    return (isAdmitted) =>
      asked.then((found) => {
        if (!isAdmitted) return found === undefined ? undefined : refusedOutcome(key, found);
        const isKnown = found !== undefined && found.status !== "absent";
        return isKnown ? told(key, this.#checked(key, found)) : this.claim(sender, key);
      });
  }

  /** What came of a message that was handled before; undefined for any other. Claims nothing. */
  outcome(key: string): Verdict | undefined | Promise<Verdict | undefined> {
    try {
      const found = this.#options.deduplicator.look(key);
      if (!(found instanceof Promise)) return outcomeOf(key, found);
      return found.then(
        (found) => outcomeOf(key, found),
        () => undefined,
      );
    } catch {
      return undefined;
    }
  }

  /** Waits for what comes of a message that is being handled, here or elsewhere; undefined when nobody wants to know any more. */
  async settled(
    key: string,
    retryAfterMs: number,
    isWanted: () => boolean,
  ): Promise<Verdict | undefined> {
    // What was claimed in this very moment has been dispatched by then.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    for (let waitMs = retryAfterMs; isWanted(); ) {
      const ending = await this.#open[key]?.ending(waitMs);
      const verdict = ending ?? (await this.#over(key, waitMs, isWanted));
      if (verdict?.act !== "wait") return verdict;
      waitMs = verdict.retryAfterMs;
    }
    return undefined;
  }

  /** Reports whether the message was seen before, and does nothing about it. */
  async rehearse(key: string): Promise<void> {
    await this.#options.deduplicator.first(key).catch(() => false);
  }

  /** A message of ours is on its way to its handler. */
  open(delivery: Delivery): void {
    this.#open[delivery.key] = delivery;
    if (this.#tending !== undefined) return;
    const { leaseMs } = this.#options;
    const everyMs = Math.min(leaseMs / RENEWALS_PER_LEASE, LONGEST_RENEWAL_MS);
    this.#tending = setInterval(() => this.#tend(), everyMs);
    this.#tending.unref();
  }

  close(delivery: Delivery): void {
    if (this.#open[delivery.key] === delivery) delete this.#open[delivery.key];
  }

  /** Refuses what comes, and waits for the handlers that are at work: for a lease, after which others may run them. */
  async drain(): Promise<void> {
    const { deduplicator, leaseMs } = this.#options;
    await deduplicator.close();
    const running = Object.values(this.#open).filter((delivery) => delivery.isAwaited);
    await Promise.all(running.map((delivery) => delivery.ending(leaseMs)));
    await this.#untold.over();
  }

  /** The store is being told what came of a message; then others are. */
  async telling(known: Promise<unknown>, tell: () => void): Promise<void> {
    this.#untold.begin();
    await known;
    tell();
    this.#untold.end();
  }

  /** Renews what is known to be at work. A handler that may never acknowledge has one lease to do it in. */
  #tend(): void {
    const deliveries = Object.values(this.#open);
    for (const delivery of deliveries) {
      if (delivery.isAwaited) delivery.renew();
      else if (delivery.openForMs > this.#options.leaseMs) this.close(delivery);
    }
    if (deliveries.length > 0) return;
    clearInterval(this.#tending);
    this.#tending = undefined;
  }

  #askAhead(key: string): Promise<HeldClaim | Look | undefined> | undefined {
    const { deduplicator, keepsResults } = this.#options;
    try {
      return keepsResults ? deduplicator.admitFor(key)?.catch(() => undefined) : undefined;
    } catch {
      return undefined;
    }
  }

  async #first(key: string): Promise<Verdict> {
    try {
      const isFirst = await this.#options.deduplicator.first(key);
      return isFirst ? PASS : { act: "replay", args: undefined };
    } catch (error) {
      return this.#withoutStore(key, error);
    }
  }

  /** What becomes of a message that was in progress elsewhere, once it no longer is. */
  async #over(
    key: string,
    retryAfterMs: number,
    isWanted: () => boolean,
  ): Promise<Verdict | undefined> {
    try {
      const found = await this.#options.deduplicator.over(key, retryAfterMs, isWanted);
      if (found === undefined) return undefined;
      if (found.status !== "absent") return this.#verdict(key, found);
      return await this.#claim(senderOf(key), key);
    } catch (error) {
      return this.#withoutStore(key, error);
    }
  }

  #verdict(key: string, found: GatewayClaim): Verdict {
    switch (found.status) {
      case "fresh":
        return { act: "deliver", claim: found, key, messages: this };
      case "duplicate":
        return { act: "replay", args: restored(found.result) };
      case "in-progress":
        return { act: "wait", key, messages: this, retryAfterMs: found.retryAfterMs };
    }
  }

  /** As `#verdict`: what is fresh to the store may have been claimed here while that failed, and be at work, or over. */
  #checked(key: string, found: GatewayClaim): Verdict {
    if (found.status !== "fresh") return this.#verdict(key, found);
    const here = this.#options.local?.look(key) as Look | undefined;
    if (here === undefined || here.status === "absent") return this.#verdict(key, found);
    giveBack(found);
    return this.#verdict(key, here);
  }

  async #withoutStore(key: string, error: unknown): Promise<Verdict> {
    const { local, onStoreError, retryAfterMs } = this.#options;
    const refused: Verdict = {
      act: "refuse",
      refusal: refusal("STORE_UNAVAILABLE", retryAfterMs),
    };
    // The store did not fail, and may know that the message is at work elsewhere.
    if (isCallers(error)) return refused;
    if (onStoreError === "allow") return PASS;
    try {
      if (local !== undefined) return this.#verdict(key, await local.claimFor(senderOf(key), key));
    } catch {
      // Not even that: it has no room.
    }
    return refused;
  }
}

/** The verdict on a message that has just come. A copy of one that had been seen is told of, once. */
function told(key: string, verdict: Verdict): Verdict {
  if (verdict.act === "wait" || verdict.act === "replay") duplicate(key);
  return verdict;
}

/** What came of a message that is not admitted: only where that is over is the copy more than a denied packet. */
function outcomeOf(key: string, found: Look): Verdict | undefined {
  if (found.status !== "duplicate") return undefined;
  return told(key, { act: "replay", args: restored(found.result) });
}

/** As `outcomeOf`. It may have been claimed by another's decision. */
function refusedOutcome(key: string, found: HeldClaim | Look): Verdict | undefined {
  if (found.status !== "fresh") return outcomeOf(key, found);
  giveBack(found);
  return undefined;
}

/** What is not told to the store lasts for a lease. */
function giveBack(claim: HeldClaim): void {
  Promise.resolve(claim.release()).catch(() => false);
}
