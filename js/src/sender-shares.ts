import { TidegateError } from "./errors.js";
import { KeyIndex } from "./key-index.js";

/** One sender's ids, by their names in the index, the oldest first. */
interface Share {
  readonly sender: string;
  readonly ids: Set<string>;
}

/** What is known of an id that a sender wants to give up. */
export type IdState = "gone" | "under way" | "finished";

/** Sees to it that no sender fills more than a hundredth of a memory store's ids. */
export class SenderShares {
  readonly #most: number;
  readonly #senders = new Map<string, Share>();
  readonly #byId: KeyIndex<Share>;

  constructor(maxKeys: number) {
    this.#most = Math.ceil(maxKeys / 100);
    this.#byId = new KeyIndex(maxKeys);
  }

  /**
   * Makes room for one more id of the sender: its own oldest finished ones go first.
   *
   * @throws TidegateError "store" when all of its ids are being worked on.
   */
  makeRoom(sender: string, stateOf: (id: string) => IdState, forget: (id: string) => void): void {
    const share = this.#senders.get(sender);
    if (share === undefined) return;
    for (const id of share.ids) {
      if (share.ids.size < this.#most) return;
      const state = stateOf(id);
      if (state === "finished") forget(id);
      if (state !== "under way") this.remove(id);
    }
    if (share.ids.size >= this.#most) {
      throw new TidegateError("store", `one sender has ${this.#most} messages under way`);
    }
  }

  add(sender: string, id: string): void {
    let share = this.#senders.get(sender);
    if (share === undefined) {
      share = { sender, ids: new Set() };
      this.#senders.set(sender, share);
    }
    share.ids.add(id);
    this.#byId.add(id, share);
  }

  /** The id is not remembered any more. */
  remove(id: string): void {
    const share = this.#byId.get(id);
    if (share === undefined) return;
    this.#byId.delete(id);
    share.ids.delete(id);
    if (share.ids.size === 0) this.#senders.delete(share.sender);
  }
}
