import { type Guarded, rethrow } from "./guarded.js";
import { MessageCall } from "./message-call.js";
import type { Answer } from "./pending.js";
import type { Claimed, MessageDriver, MessageReply, SyncMessageDriver } from "./store.js";

/** A fresh claim: each call answers false when it was lost to another, at once where the store does. */
export interface HeldClaim {
  readonly status: "fresh";
  /** The work is done; what came of it is JSON already. */
  keep(json: string | undefined): boolean | Promise<boolean>;
  /** The work failed. */
  release(): boolean | Promise<boolean>;
  /** Makes the lease last from now. */
  renew(): boolean | Promise<boolean>;
}

/** What the claims of one Deduplicator have in common: there are many of them, and each is to be small. */
export interface Terms<D extends MessageDriver = MessageDriver> {
  readonly guarded: Guarded;
  readonly messages: D;
  readonly ttlMs: number;
  readonly leaseMs: number;
}

/** A claim on an id of a synchronous store. */
export class ClaimNow implements HeldClaim {
  readonly status = "fresh";

  constructor(
    private readonly terms: Terms<SyncMessageDriver>,
    private readonly id: string,
    private readonly claim: Claimed,
  ) {}

  keep(json: string | undefined): boolean {
    const { guarded, messages, ttlMs } = this.terms;
    return guarded.now(() => messages.commit(this.id, this.claim, ttlMs, json));
  }

  release(): boolean {
    return this.#run(MessageCall.release(String(this.claim.token)));
  }

  renew(): boolean {
    return this.#run(MessageCall.renew(String(this.claim.token), this.terms.leaseMs));
  }

  #run(call: MessageCall): boolean {
    const { guarded, messages } = this.terms;
    return isYes(guarded.now(() => messages.call(this.id, call)));
  }
}

/** A claim on an id of any store. */
export class ClaimLater implements HeldClaim {
  readonly status = "fresh";

  constructor(
    private readonly terms: Terms,
    private readonly id: string,
    private readonly token: string,
    private readonly payload?: string,
  ) {}

  keep(json: string | undefined): Promise<boolean> {
    const { id, token, payload } = this;
    const { messages, ttlMs } = this.terms;
    const commit = MessageCall.commit(token, ttlMs, json, payload);
    return this.#ask(() => messages.call(id, commit));
  }

  release(): Promise<boolean> {
    const { id, token, terms } = this;
    return this.#ask(() => terms.messages.call(id, MessageCall.release(token)));
  }

  renew(): Promise<boolean> {
    const { id, token, payload, terms } = this;
    const renewal = MessageCall.renew(token, terms.leaseMs, payload);
    return this.#ask(() => terms.messages.call(id, renewal));
  }

  #ask(ask: () => Answer<MessageReply>): Promise<boolean> {
    return this.terms.guarded.ask(ask, isYes, rethrow);
  }
}

function isYes({ status }: MessageReply): boolean {
  return status === "yes";
}
