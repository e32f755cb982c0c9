import type { MessageCall } from "../message-call.js";
import { replyOf } from "../message-reply.js";
import type { MessageReply } from "../store.js";
import { stores } from "../stores.js";
import { freedBy } from "../wasm/freed.js";

const seen = /* @__PURE__ */ freedBy((number) => stores().core.free_seen(number));

/** A call about an id that is under way. What comes of it has to be told, once. */
export interface SeenQuestion {
  readonly number: number;
  /** The id's slot, or NONE. */
  readonly slot: number;
}

/** The ids that this process knows to be done. */
export class SeenIds {
  readonly #core = stores().core;
  readonly #exchange = stores().exchange;
  readonly #seen: number;

  constructor(mostIds: number) {
    this.#seen = this.#core.seen(mostIds);
    seen.register(this, this.#seen);
  }

  /** What is known of the id, if that answers the call. */
  answer(slot: number, call: MessageCall, now: number): MessageReply | undefined {
    const status = this.#core.seen_answer(this.#seen, slot, this.#exchange.text(call), now);
    return replyOf(status, this.#exchange);
  }

  /** The shared store is going to be asked. */
  ask(slot: number, call: MessageCall, now: number): SeenQuestion {
    const number = this.#core.seen_ask(this.#seen, slot, this.#exchange.text(call), now);
    return { number, slot: this.#exchange.numbers[0] as number };
  }

  /** Whether the call did what it asked for; false when nobody knows. */
  told({ number }: SeenQuestion, yes: boolean): void {
    this.#core.seen_told(this.#seen, number, Number(yes));
  }

  /** A slot freed since last asked, or NONE. */
  freed(): number {
    return this.#core.seen_freed(this.#seen);
  }
}
