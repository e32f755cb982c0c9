/** The first Map is left at this many keys, before its growing takes long. */
const MAP_KEYS = 1 << 16;
/** Keys of a shard when all keys are in use: there, most strings have to be fetched from memory. */
const SHARD_KEYS = 1 << 13;
/** All are made at once. */
const MAX_SHARDS = 1 << 12;
/** Keys carried over to the shards with each insertion. */
const MOVED_AT_ONCE = 4;

/**
 * Keys to slots (or to what else there is one of per key). One Map while it is small; beyond that shards,
 * to which the keys move a few at a time: a single Map of millions of keys would stop the process for over
 * a second whenever it grows.
 */
export class KeyIndex<T = number> {
  readonly #shardCount: number;
  readonly #seed = (Math.random() * 2 ** 32) | 0;
  #first = new Map<string, T>();
  #shards: Map<string, T>[] = [];
  /** A new key is looked for before it is added: the second time its shard is known. */
  #lastKey = "";
  #lastShard: Map<string, T> | undefined;
  /** Where moving has got to; begun anew, it would pass over all that has moved already. */
  #unmoved: Iterator<[string, T]> | undefined;

  constructor(maxKeys: number) {
    const shards = 2 ** Math.ceil(Math.log2(Math.max(2, maxKeys / SHARD_KEYS)));
    this.#shardCount = Math.min(shards, MAX_SHARDS);
  }

  get(key: string): T | undefined {
    if (this.#shards.length === 0) return this.#first.get(key);
    return this.#shard(key).get(key) ?? (this.#first.size === 0 ? undefined : this.#first.get(key));
  }

  /** Adds a key that is not there. */
  add(key: string, slot: T): void {
    if (this.#shards.length === 0) {
      this.#first.set(key, slot);
      if (this.#first.size >= MAP_KEYS) {
        this.#shards = Array.from({ length: this.#shardCount }, () => new Map());
        this.#unmoved = this.#first.entries();
      }
      return;
    }
    this.#shard(key).set(key, slot);
    this.#move();
  }

  /** All slots. */
  values(): T[] {
    return [this.#first, ...this.#shards].flatMap((shard) => [...shard.values()]);
  }

  delete(key: string): void {
    if (this.#shards.length > 0 && this.#shard(key).delete(key)) return;
    this.#first.delete(key);
  }

  #move(): void {
    for (let left = MOVED_AT_ONCE; left > 0 && this.#unmoved !== undefined; left -= 1) {
      const { done, value } = this.#unmoved.next();
      if (done) {
        this.#unmoved = undefined;
        this.#first = new Map();
      } else {
        const [key, slot] = value;
        this.#first.delete(key);
        this.#shard(key).set(key, slot);
      }
    }
  }

  /** Seeded, so that nobody can choose keys that all meet in one shard. */
  #shard(key: string): Map<string, T> {
    if (key === this.#lastKey && this.#lastShard !== undefined) return this.#lastShard;
    let hash = this.#seed;
    for (let at = 0; at < key.length; at += 1) {
      hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
    }
    hash ^= hash >>> 15;
    this.#lastKey = key;
    this.#lastShard = this.#shards[hash & (this.#shardCount - 1)] as Map<string, T>;
    return this.#lastShard;
  }
}
