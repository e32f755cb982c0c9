import { TidegateError } from "./errors.js";

/** Slots per chunk of the way from slots to ids; a chunk is never copied to grow. */
const CHUNK = 1 << 12;

/** One sender's ids, linked in the order in which they came. */
interface Share {
  readonly sender: string;
  size: number;
  oldest: Id | undefined;
  newest: Id | undefined;
}

/** An id by its slot, among those of its sender. */
interface Id {
  readonly slot: number;
  readonly share: Share;
  older: Id | undefined;
  newer: Id | undefined;
}

/** What is known of an id that a sender wants to give up. */
export type IdState = "gone" | "under way" | "finished";

/** Sees to it that no sender fills more than a hundredth of a memory store's ids. */
export class SenderShares {
  readonly #most: number;
  readonly #senders = new Map<string, Share>();
  readonly #chunks: (Id | undefined)[][] = [];

  constructor(maxKeys: number) {
    this.#most = Math.ceil(maxKeys / 100);
  }

  /** Whether the sender has to give up an id for a new one. */
  isFull(sender: string): boolean {
    return (this.#senders.get(sender)?.size ?? 0) >= this.#most;
  }

  /**
   * Makes room for one more id of the sender: its own oldest finished ones go first.
   *
   * @throws TidegateError "store" when all of its ids are being worked on.
   */
  makeRoom(
    sender: string,
    stateOf: (slot: number) => IdState,
    forget: (slot: number) => void,
  ): void {
    for (
      let id = this.#senders.get(sender)?.oldest;
      id !== undefined && this.isFull(sender);
      id = id.newer
    ) {
      const state = stateOf(id.slot);
      if (state === "finished") forget(id.slot);
      if (state !== "under way") this.remove(id.slot);
    }
    if (this.isFull(sender)) {
      throw new TidegateError("store", `one sender has ${this.#most} messages under way`);
    }
  }

  add(sender: string, slot: number): void {
    let share = this.#senders.get(sender);
    if (share === undefined) {
      share = { sender, size: 0, oldest: undefined, newest: undefined };
      this.#senders.set(sender, share);
    }
    const id: Id = { slot, share, older: share.newest, newer: undefined };
    if (share.newest === undefined) share.oldest = id;
    else share.newest.newer = id;
    share.newest = id;
    share.size += 1;
    this.#chunk(slot)[slot % CHUNK] = id;
  }

  /** The id of this slot is not remembered any more. */
  remove(slot: number): void {
    const chunk = this.#chunks[Math.floor(slot / CHUNK)];
    const id = chunk?.[slot % CHUNK];
    if (chunk === undefined || id === undefined) return;
    chunk[slot % CHUNK] = undefined;
    const { share, older, newer } = id;
    if (older === undefined) share.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) share.newest = older;
    else newer.older = older;
    share.size -= 1;
    if (share.size === 0) this.#senders.delete(share.sender);
  }

  #chunk(slot: number): (Id | undefined)[] {
    const at = Math.floor(slot / CHUNK);
    while (this.#chunks.length <= at) this.#chunks.push(new Array(CHUNK).fill(undefined));
    return this.#chunks[at] as (Id | undefined)[];
  }
}
