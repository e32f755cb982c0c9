// Workers KV as its documents tell of it, with what the local emulator leaves out: a cache at each location, which
// believes what it read (that there was nothing, too) for a minute, and one write a second for a key.

const CACHE_MS = 60_000;
const WRITE_EVERY_MS = 1_000;
const MIN_TTL_S = 60;
const MAX_KEY_BYTES = 512;
const MAX_VALUE_BYTES = 25 * 2 ** 20;

export class FakeKv {
  /** Writes that were taken, and those that were refused for coming too soon. */
  writes = 0;
  refused = 0;
  /** In place of an answer: a function that is told "GET" or "PUT". */
  fault = undefined;
  #now;
  #entries = new Map();
  #writtenAt = new Map();

  constructor(now = Date.now) {
    this.#now = now;
  }

  /** How many records have not expired. */
  get size() {
    return [...this.#entries.values()].filter(({ expiresAt }) => expiresAt > this.#now()).length;
  }

  /** The keys that were ever written. */
  get keys() {
    return [...this.#writtenAt.keys()];
  }

  /**
   * The namespace as it is bound at one location.
   *
   * @param options.seesItsWrites whether the cache learns of the location's own writes: usual, but not guaranteed
   */
  location({ seesItsWrites = true } = {}) {
    const cache = new Map();
    const believe = (key, entry) => cache.set(key, { entry, until: this.#now() + CACHE_MS });
    return {
      get: async (key) => {
        checkKey("GET", key);
        await this.fault?.("GET");
        const cached = cache.get(key);
        if (!cached || cached.until <= this.#now()) believe(key, this.#entries.get(key));
        const { entry } = cache.get(key);
        return entry !== undefined && entry.expiresAt > this.#now() ? entry.value : null;
      },
      put: async (key, value, { expirationTtl } = {}) => {
        checkPut(key, value, expirationTtl);
        await this.fault?.("PUT");
        this.#write(key, value, expirationTtl);
        if (seesItsWrites) believe(key, this.#entries.get(key));
      },
    };
  }

  #write(key, value, ttl = Number.POSITIVE_INFINITY) {
    const now = this.#now();
    if (now - (this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY) < WRITE_EVERY_MS) {
      this.refused += 1;
      throw failed("PUT", "429 Too Many Requests");
    }
    this.writes += 1;
    this.#writtenAt.set(key, now);
    this.#entries.set(key, { value, expiresAt: now + ttl * 1_000 });
  }
}

const failed = (method, why) => new Error(`KV ${method} failed: ${why}`);

function checkKey(method, key) {
  const bytes = Buffer.byteLength(key);
  if (["", ".", ".."].includes(key)) throw failed(method, `400 Key "${key}" is not allowed`);
  if (bytes <= MAX_KEY_BYTES) return;
  throw failed(method, `414 UTF-8 encoded length of ${bytes} exceeds key length limit of 512.`);
}

function checkPut(key, value, ttl) {
  checkKey("PUT", key);
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) throw failed("PUT", "413 Value length exceeded");
  if (ttl === undefined || (Number.isInteger(ttl) && ttl >= MIN_TTL_S)) return;
  throw failed("PUT", `400 Invalid expiration_ttl of ${ttl}. It must be at least ${MIN_TTL_S}.`);
}
