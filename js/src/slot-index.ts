import { isLong, shortened } from "./key.js";
import { KeyIndex } from "./key-index.js";

/** Slots per chunk of the way back from slots to keys; a chunk is never copied to grow. */
const CHUNK = 1 << 12;

interface Chunk {
  readonly keys: string[];
  readonly owners: Uint32Array;
}

/** The keys of one prefix. Long ones are kept as their hash, apart from those that are as they are. */
export class PrefixIndex {
  constructor(
    private readonly slots: SlotIndex,
    private readonly plain: number,
    private readonly long: number,
  ) {}

  get(key: string): number | undefined {
    return isLong(key)
      ? this.slots.index(this.long).get(shortened(key))
      : this.slots.index(this.plain).get(key);
  }

  add(key: string, slot: number): void {
    if (isLong(key)) this.slots.add(this.long, shortened(key), slot);
    else this.slots.add(this.plain, key, slot);
  }
}

/** Finds the slots of one table by prefix and key, and forgets those that the table freed. */
export class SlotIndex {
  readonly #maxKeys: number;
  readonly #indexes: KeyIndex[] = [];
  readonly #prefixes = new Map<string, PrefixIndex>();
  readonly #chunks: Chunk[] = [];

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  of(prefix: string): PrefixIndex {
    let found = this.#prefixes.get(prefix);
    if (found === undefined) {
      const first =
        this.#indexes.push(new KeyIndex(this.#maxKeys), new KeyIndex(this.#maxKeys)) - 2;
      found = new PrefixIndex(this, first, first + 1);
      this.#prefixes.set(prefix, found);
    }
    return found;
  }

  index(number: number): KeyIndex {
    return this.#indexes[number] as KeyIndex;
  }

  add(index: number, key: string, slot: number): void {
    const chunk = this.#chunk(slot);
    chunk.keys[slot % CHUNK] = key;
    chunk.owners[slot % CHUNK] = index;
    this.index(index).add(key, slot);
  }

  /** The table freed this slot. */
  forget(slot: number): void {
    const chunk = this.#chunk(slot);
    const key = chunk.keys[slot % CHUNK];
    if (key === undefined || key === "") return;
    this.index(chunk.owners[slot % CHUNK] as number).delete(key);
    chunk.keys[slot % CHUNK] = "";
  }

  #chunk(slot: number): Chunk {
    const at = Math.floor(slot / CHUNK);
    while (this.#chunks.length <= at) {
      this.#chunks.push({ keys: new Array(CHUNK).fill(""), owners: new Uint32Array(CHUNK) });
    }
    return this.#chunks[at] as Chunk;
  }
}
