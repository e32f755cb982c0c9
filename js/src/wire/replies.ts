import { type ErrorCode, TidegateError } from "../errors.js";
import { nonsense } from "./nonsense.js";

const COMMA = 44;
const ZERO = 48;
const REFUSED = "!";
/** Of what a tier is told. */
const MOST_NUMBERS = 12;

/** The replies of a batch, read one after the other. Any other answer than the script's is a "store" error. */
export class Replies {
  readonly #told: string[];
  readonly #texts: unknown[];
  readonly #numbers: number[] = new Array(MOST_NUMBERS).fill(0);
  #next = 0;

  constructor(answer: unknown, count: number) {
    this.#texts = Array.isArray(answer) ? answer : [answer];
    this.#told = this.text().split(";");
    if (this.#told.length !== count) throw nonsense();
  }

  /** The next operation's numbers, until the one after it is read; those that are left out are 0. */
  next(): readonly number[] {
    const told = this.#told[this.#next] as string;
    this.#next += 1;
    if (told === REFUSED) throw refused(this.text());
    return this.#read(told);
  }

  /** The next text. */
  text(): string {
    return textOf(this.#texts.shift());
  }

  #read(told: string): readonly number[] {
    const numbers = this.#numbers.fill(0);
    let at = 0;
    let number = 0;
    for (let index = 0; index < told.length; index += 1) {
      const character = told.charCodeAt(index);
      if (character === COMMA) {
        numbers[at] = number;
        at += 1;
        number = 0;
        continue;
      }
      const digit = character - ZERO;
      if (digit < 0 || digit > 9) throw nonsense();
      number = number * 10 + digit;
    }
    numbers[at] = number;
    if (at >= MOST_NUMBERS) throw nonsense();
    return numbers;
  }
}

/** Text as clients answer it: a string, or bytes where they were told to. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  throw nonsense();
}

/** The error that the script told of one operation. */
function refused(said: string): TidegateError {
  const [code, message]: [ErrorCode, string] =
    said === "corrupt" || said.startsWith("WRONGTYPE")
      ? ["corrupt_state", "the key holds something that is not ours"]
      : said === "too many limits"
        ? ["unsupported", "more limits on one key than a record holds"]
        : ["store", `the server refused: ${said}`];
  return new TidegateError(code, message, { cause: new Error(said) });
}
