import { digest } from "./core.js";
import { isLong, shortened } from "./key.js";
import { KeyIndex } from "./key-index.js";
import { KeyTree } from "./key-tree.js";
import { bad, textBytes } from "./options.js";

/** Slots per chunk of the way back from slots to keys; a chunk is never copied to grow. */
const CHUNK = 1 << 12;

/** The keys of as many slots, and the index of each; where all are of one, as with a single prefix, its number alone. */
class Chunk {
  readonly #keys: string[] = new Array(CHUNK).fill("");
  readonly #owner: number;
  #owners: Uint32Array | undefined;

  constructor(owner: number) {
    this.#owner = owner;
  }

  put(at: number, key: string, owner: number): void {
    this.#keys[at] = key;
    if (this.#owners === undefined) {
      if (owner === this.#owner) return;
      this.#owners = new Uint32Array(CHUNK).fill(this.#owner);
    }
    this.#owners[at] = owner;
  }

  /** The key and its index; undefined when there is none. */
  take(at: number): { key: string; owner: number } | undefined {
    const key = this.#keys[at] as string;
    if (key === "") return undefined;
    this.#keys[at] = "";
    return { key, owner: this.#owners?.[at] ?? this.#owner };
  }
}

/** The keys of one prefix. Long ones are kept shortened, apart from those that are as they are. */
export class PrefixIndex {
  readonly #plainKeys: KeyIndex | KeyTree;

  constructor(
    protected readonly slots: SlotIndex,
    protected readonly plain: number,
    protected readonly long: number,
    private readonly short = shortened,
  ) {
    this.#plainKeys = slots.index(plain);
  }

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
      : this.#plainKeys.get(key);
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
    const at = Math.floor(slot / CHUNK);
    while (this.#chunks.length <= at) this.#chunks.push(new Chunk(index));
    (this.#chunks[at] as Chunk).put(slot % CHUNK, key, index);
    this.index(index).add(key, slot);
  }

  /** The table freed this slot. */
  forget(slot: number): void {
    const forgotten = this.#chunks[Math.floor(slot / CHUNK)]?.take(slot % CHUNK);
    if (forgotten !== undefined) this.index(forgotten.owner).delete(forgotten.key);
  }
}
