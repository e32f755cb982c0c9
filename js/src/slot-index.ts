import { digest } from "./core.js";
import { isLong, shortened } from "./key.js";
import { KeyIndex } from "./key-index.js";
import { KeyTree } from "./key-tree.js";
import { bad, textBytes } from "./options.js";

/** Slots per chunk of the way back from slots to keys; a chunk is never copied to grow. */
const CHUNK = 1 << 12;

interface Chunk {
  readonly keys: string[];
  readonly owners: Uint32Array;
}

/** The keys of one prefix. Long ones are kept shortened, apart from those that are as they are. */
export class PrefixIndex {
  constructor(
    protected readonly slots: SlotIndex,
    protected readonly plain: number,
    protected readonly long: number,
    private readonly short = shortened,
  ) {}

  /** Its place among the indexes. */
  get first(): number {
    return this.plain;
  }

  /** The slots of all its keys. */
  held(): number[] {
    const indexes = [this.plain, this.long].map((index) => this.slots.index(index) as KeyIndex);
    return indexes.flatMap((index) => index.values());
  }

  get(key: string): number | undefined {
    return isLong(key)
      ? this.slots.index(this.long).get(this.short(key))
      : this.slots.index(this.plain).get(key);
  }

  add(key: string, slot: number): void {
    if (isLong(key)) this.slots.add(this.long, this.short(key), slot);
    else this.slots.add(this.plain, key, slot);
  }
}

/** Keys of which it is known what is below each, along their colons. */
export class TreeIndex extends PrefixIndex {
  constructor(slots: SlotIndex, plain: number, long: number) {
    super(slots, plain, long, cut);
  }

  /** The slots of the key and of those that begin with it and a colon. */
  below(key: string): number[] {
    if (isLong(key)) bad("bad_argument", "prefix", key, "a string of at most 200 characters");
    const own = this.get(key);
    const trees = [this.plain, this.long].map((index) => this.slots.index(index) as KeyTree);
    const below = trees.flatMap((tree) => tree.below(key));
    return own === undefined ? below : [own, ...below];
  }
}

/** A long key: as it is up to its last colon that is not too far on, and then its hash. */
function cut(key: string): string {
  return key.slice(0, key.lastIndexOf(":", 200) + 1) + digest(textBytes(key));
}

/** Finds the slots of one table by prefix and key, and forgets those that the table freed. */
export class SlotIndex {
  readonly #maxKeys: number;
  readonly #indexes: (KeyIndex | KeyTree)[] = [];
  readonly #prefixes = new Map<string, PrefixIndex>();
  /** Where there are indexes of no prefix. */
  readonly #dropped: number[] = [];
  readonly #chunks: Chunk[] = [];
  #tree: TreeIndex | undefined;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  of(prefix: string): PrefixIndex {
    let found = this.#prefixes.get(prefix);
    if (found === undefined) {
      const first = this.#dropped.pop() ?? this.#indexes.length;
      this.#indexes[first] = new KeyIndex(this.#maxKeys);
      this.#indexes[first + 1] = new KeyIndex(this.#maxKeys);
      found = new PrefixIndex(this, first, first + 1);
      this.#prefixes.set(prefix, found);
    }
    return found;
  }

  /** Forgets a prefix none of whose keys has a slot any more. */
  drop(prefix: string): void {
    this.#dropped.push(this.of(prefix).first);
    this.#prefixes.delete(prefix);
  }

  /** The one index of this table that is a tree; no prefix has it. */
  tree(): TreeIndex {
    if (this.#tree === undefined) {
      const first = this.#indexes.push(new KeyTree(this.#maxKeys), new KeyTree(this.#maxKeys)) - 2;
      this.#tree = new TreeIndex(this, first, first + 1);
    }
    return this.#tree;
  }

  index(number: number): KeyIndex | KeyTree {
    return this.#indexes[number] as KeyIndex | KeyTree;
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
    const owner = chunk.owners[slot % CHUNK] as number;
    this.index(owner).delete(key);
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
