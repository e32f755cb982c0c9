import type { MessageCall } from "#wasm";
import { Carried } from "../carried.js";
import { Deadlines } from "../deadlines.js";
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

  constructor(driver: TieredDriver, index: PrefixIndex, l2: MessageDriver, timeoutMs: number) {
    this.#driver = driver;
    this.#index = index;
    this.#l2 = l2;
    this.#deadlines = new Deadlines(timeoutMs);
  }

  call(id: string, call: MessageCall, sender?: string): Answer<MessageReply> {
    const { seen } = this.#driver;
    const known = this.#index.get(id);
    if (known !== undefined) {
      const reply = seen.answer(known, call, monotonicNow()) as MessageReply | undefined;
      if (reply !== undefined) return reply;
    }
    const question = seen.ask(known ?? NONE, call, monotonicNow());
    const slot = question.slot();
    this.#forgetFreed();
    if (known === undefined && slot !== NONE) this.#index.add(id, slot);
    const told = (reply?: MessageReply) => {
      seen.told(question, reply?.status === "yes");
      question.free();
    };
    return Carried.ask<MessageReply>(() => this.#l2.call(id, call, sender), this.#deadlines, {
      told,
      failed: told,
    });
  }

  #forgetFreed(): void {
    const { seen, seenIndex } = this.#driver;
    for (let slot = seen.freed(); slot !== NONE; slot = seen.freed()) seenIndex.forget(slot);
  }
}
