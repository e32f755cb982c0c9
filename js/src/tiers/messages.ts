import { Carried } from "../carried.js";
import { Deadlines } from "../deadlines.js";
import { MessageCall } from "../message-call.js";
import { monotonicNow } from "../monotonic.js";
import type { Answer } from "../pending.js";
import type { PrefixIndex } from "../slot-index.js";
import type { MessageDriver, MessageReply } from "../store.js";
import { NONE, type TieredDriver } from "./driver.js";

/** Ids that this process finished itself are known here; of all others l2 alone knows. */
export class TieredMessages implements MessageDriver {
  readonly #driver: TieredDriver;
  readonly #index: PrefixIndex;
  readonly #l2: MessageDriver;
  readonly #deadlines: Deadlines;
  readonly admit?: (id: string, token: string, leaseMs: number) => Answer<MessageReply>;

  constructor(driver: TieredDriver, index: PrefixIndex, l2: MessageDriver, timeoutMs: number) {
    this.#driver = driver;
    this.#index = index;
    this.#l2 = l2;
    this.#deadlines = new Deadlines(timeoutMs);
    const admit = l2.admit?.bind(l2);
    if (admit === undefined) return;
    this.admit = (id, token, leaseMs) =>
      this.#claimed(id, token, leaseMs) ?? admit(id, token, leaseMs);
  }

  /** A decision that was made here is in no call that a claim could go with. */
  get admits(): boolean {
    return this.#driver.isDeciding && this.#l2.admits === true;
  }

  call(id: string, call: MessageCall, sender?: string): Answer<MessageReply> {
    const { seen } = this.#driver;
    const known = this.#index.get(id);
    const reply = known === undefined ? undefined : this.#answer(known, call);
    if (reply !== undefined) return reply;
    this.#driver.asks(false);
    const question = seen.ask(known ?? NONE, call, monotonicNow());
    const slot = question.slot();
    this.#forgetFreed();
    if (known === undefined && slot !== NONE) this.#index.add(id, slot);
    const told = (reply?: MessageReply) => seen.told(question, reply?.status === "yes");
    return Carried.ask<MessageReply>(() => this.#l2.call(id, call, sender), this.#deadlines, {
      told,
      failed: told,
    });
  }

  #claimed(id: string, token: string, leaseMs: number): MessageReply | undefined {
    const slot = this.#index.get(id);
    return slot === undefined ? undefined : this.#answer(slot, MessageCall.claim(token, leaseMs));
  }

  #answer(slot: number, call: MessageCall): MessageReply | undefined {
    return this.#driver.seen.answer(slot, call, monotonicNow()) as MessageReply | undefined;
  }

  #forgetFreed(): void {
    const { seen, seenIndex } = this.#driver;
    for (let slot = seen.freed(); slot !== NONE; slot = seen.freed()) seenIndex.forget(slot);
  }
}
