import { errorFrom, TidegateError } from "../errors.js";
import { tellStoreError } from "../guarded.js";

/** What is used of a KV namespace. */
export interface KvNamespace {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options: { expirationTtl: number }): Promise<void>;
}

/** A record that this isolate changed. */
interface Held {
  readonly key: string;
  text: string;
  /** When there is nothing left to remember of it. */
  overAt: number;
  /** KV takes no write before. */
  dueAt: number;
  failures: number;
  /** Somebody is at work to write it, until then at least: a request that is ended takes its work with it. */
  keptUntil: number;
  /** The newest of those; it takes over from the one before. */
  keeper: number;
  work: Promise<void> | undefined;
  /** Once it is written: until then KV may tell what was there before. */
  believedUntil: number;
}

const WRITE_EVERY_MS = 1_000;
const BELIEVED_MS = 60_000;
const MIN_TTL_S = 60;
const PUT_TIMEOUT_MS = 5_000;
/** A Worker runs for half a minute at most after its answer. */
const KEPT_MS = 20_000;
/** In a row, each waited for twice as long as the one before. Then the key's next call tries again. */
const MOST_FAILURES = 5;
const MOST_HELD = 16 * 2 ** 20;
/** What a record takes beside its texts. */
const RECORD_BYTES = 200;
/** So many records are tried again by a call that finds no room. */
const MOST_TRIED_AGAIN = 32;

/**
 * The records of a KV namespace, with a conditional write: within this isolate it is one, since what this isolate
 * changed is read from its memory.
 */
export class KvRecords {
  readonly #namespace: KvNamespace;
  readonly #waitUntil: (promise: Promise<unknown>) => void;
  readonly #unwritten = new Map<string, Held>();
  /** In the order in which they were written. */
  readonly #written = new Map<string, Held>();
  #bytes = 0;

  constructor(namespace: KvNamespace, waitUntil: (promise: Promise<unknown>) => void) {
    this.#namespace = namespace;
    this.#waitUntil = waitUntil;
  }

  get(key: string): string | Promise<string | null> {
    return this.#find(key)?.text ?? this.#namespace.get(key);
  }

  /** The write itself is behind the answer. */
  compareAndSet(
    key: string,
    expected: string | null,
    next: string,
    ttlMs: number,
  ): boolean | Promise<boolean> {
    const held = this.#find(key);
    if (held !== undefined && held.text !== expected) return false;
    const overAt = Date.now() + ttlMs;
    if (!this.#hasRoom(bytesOf(key, next))) {
      this.#tryAgain();
      return this.#writeThrough(key, next, overAt);
    }
    this.#hold(held ?? absent(key), next, overAt);
    return true;
  }

  /** Writes what is not written yet. What KV does not take was told as events. */
  async settle(): Promise<void> {
    const unwritten = [...this.#unwritten.values()];
    for (const held of unwritten) this.#keep(held);
    await Promise.all(unwritten.map(({ work }) => work));
  }

  #find(key: string): Held | undefined {
    const now = Date.now();
    for (const held of this.#written.values()) {
      if (now < held.believedUntil) break;
      this.#forget(held);
    }
    return this.#unwritten.get(key) ?? this.#written.get(key);
  }

  #hold(held: Held, text: string, overAt: number): void {
    this.#forget(held);
    held.text = text;
    held.overAt = overAt;
    this.#unwritten.set(held.key, held);
    this.#bytes += bytesOf(held.key, text);
    this.#keep(held);
  }

  #forget({ key, text }: Held): void {
    const wasHeld = this.#unwritten.delete(key) || this.#written.delete(key);
    if (wasHeld) this.#bytes -= bytesOf(key, text);
  }

  #hasRoom(bytes: number): boolean {
    for (const held of this.#written.values()) {
      if (this.#bytes + bytes <= MOST_HELD) break;
      this.#forget(held);
    }
    return this.#bytes + bytes <= MOST_HELD;
  }

  /** What KV refused to take for too long stands first. */
  #tryAgain(): void {
    let left = MOST_TRIED_AGAIN;
    for (const held of this.#unwritten.values()) {
      if (left === 0) return;
      left -= 1;
      this.#keep(held);
    }
  }

  async #writeThrough(key: string, text: string, overAt: number): Promise<boolean> {
    await this.#put(key, text, overAt);
    const held = this.#unwritten.get(key);
    if (held !== undefined) this.#forget(held);
    return true;
  }

  /** Sees to it that the record is written, and that the request that changed it lives until it is. */
  #keep(held: Held): void {
    const now = Date.now();
    if (now < held.keptUntil) return;
    held.keptUntil = now + KEPT_MS;
    held.keeper += 1;
    held.work = this.#write(held, held.keeper);
    this.#waitUntil(held.work);
  }

  async #write(held: Held, keeper: number): Promise<void> {
    const isMine = () => held.keeper === keeper && this.#unwritten.get(held.key) === held;
    while (isMine()) {
      const waitMs = held.dueAt - Date.now();
      if (waitMs > 0) await pause(Math.min(waitMs, WRITE_EVERY_MS));
      else if (!(await this.#attempt(held)) && held.failures >= MOST_FAILURES) break;
    }
    if (held.keeper === keeper) held.keptUntil = 0;
  }

  /** False when KV did not take it. */
  async #attempt(held: Held): Promise<boolean> {
    const { key, text, overAt } = held;
    held.dueAt = Date.now() + PUT_TIMEOUT_MS;
    try {
      await this.#put(key, text, overAt);
      held.failures = 0;
      if (held.text === text) this.#isWritten(held);
      return true;
    } catch (thrown) {
      held.failures += 1;
      tellStoreError(errorFrom(thrown));
      return false;
    } finally {
      held.dueAt = Date.now() + waitAfter(held.failures);
    }
  }

  #isWritten(held: Held): void {
    // A write that made room for itself may have taken its place meanwhile.
    if (this.#unwritten.get(held.key) !== held) return;
    this.#unwritten.delete(held.key);
    held.believedUntil = Date.now() + BELIEVED_MS;
    this.#written.set(held.key, held);
  }

  async #put(key: string, text: string, overAt: number): Promise<void> {
    const leftS = Math.ceil((overAt - Date.now()) / 1_000);
    const options = { expirationTtl: Math.max(MIN_TTL_S, leftS) };
    await inTime(this.#namespace.put(key, text, options), PUT_TIMEOUT_MS);
  }
}

function absent(key: string): Held {
  const never = { overAt: 0, dueAt: 0, keptUntil: 0, believedUntil: 0 };
  return { key, text: "", failures: 0, keeper: 0, work: undefined, ...never };
}

function waitAfter(failures: number): number {
  return WRITE_EVERY_MS * 2 ** Math.max(0, Math.min(failures, MOST_FAILURES) - 1);
}

/** Both texts are ASCII. */
function bytesOf(key: string, text: string): number {
  return key.length + text.length + RECORD_BYTES;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

async function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new TidegateError("timeout", `KV did not take a write within ${ms} ms`);
    timer = setTimeout(() => reject(error), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
