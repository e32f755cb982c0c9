import { TidegateError } from "../errors.js";
import type { Core } from "./exports.js";

/** So many numbers are in the block, whatever they mean. */
const NUMBERS = 16;
/** What is longer is not written by hand. */
const SHORT = 200;

/**
 * Hands texts to the module, and takes texts and numbers from it. Each call reads what it was given before it answers.
 * Places in memory are told as signed numbers; memory may be larger than those reach.
 */
export class Exchange {
  readonly #exports: () => Core;
  #bytes = new Uint8Array();
  #numbers = new Float64Array();

  /** `exports` answers the module's, which may not be there yet. */
  constructor(exports: () => Core) {
    this.#exports = exports;
  }

  /** The block of numbers; memory that grew has left the old view without a buffer. */
  get numbers(): Float64Array {
    if (this.#numbers.length === 0) {
      const at = this.#exports().numbers() >>> 0;
      this.#numbers = new Float64Array(this.#exports().memory.buffer, at, NUMBERS);
    }
    return this.#numbers;
  }

  /** Hands over a text; answers its length in bytes. */
  text(text: string): number {
    if (text.length > SHORT) return this.#put([new TextEncoder().encode(text)]);
    const at = this.#room(text.length);
    const bytes = this.#memory;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return this.#put([new TextEncoder().encode(text)]);
      bytes[at + index] = code;
    }
    return text.length;
  }

  /** Hands over one after the other; answers their lengths in bytes, and -1 for what is left out. */
  give(...values: (string | Uint8Array | undefined)[]): number[] {
    const encode = (value: string | Uint8Array) =>
      typeof value === "string" ? new TextEncoder().encode(value) : value;
    const encoded = values.map((value) => (value === undefined ? undefined : encode(value)));
    this.#put(encoded.filter((bytes) => bytes !== undefined));
    return encoded.map((bytes) => bytes?.length ?? -1);
  }

  /** The text of that length that was answered. */
  answer(length: number): string {
    const at = this.#exports().answer() >>> 0;
    return new TextDecoder().decode(this.#memory.subarray(at, at + length));
  }

  #put(values: Uint8Array[]): number {
    const length = values.reduce((sum, { length }) => sum + length, 0);
    let at = this.#room(length);
    for (const bytes of values) {
      this.#memory.set(bytes, at);
      at += bytes.length;
    }
    return length;
  }

  /** Where so many bytes are to be handed over. */
  #room(bytes: number): number {
    const at = this.#exports().given(bytes) >>> 0;
    if (at !== 0) return at;
    throw new TidegateError(
      "bad_argument",
      `${bytes} bytes at once are more than there is memory for`,
    );
  }

  get #memory(): Uint8Array {
    if (this.#bytes.length === 0) this.#bytes = new Uint8Array(this.#exports().memory.buffer);
    return this.#bytes;
  }
}
