import type { Call, Deadlines, Tick } from "./deadlines.js";
import { TidegateError } from "./errors.js";
import { type Answer, type Waiter, whenAnswered } from "./pending.js";

/** Who has to know what came of a question before the one who asked it. */
export interface Concerned<T> {
  told(answer: T): void;
  /** Nobody knows what came of it. */
  failed(): void;
}

/** One question to a store under way. What comes after its deadline changes nothing. */
export class Carried<T> implements Waiter<T>, Call {
  readonly #concerned: Concerned<T> | undefined;
  readonly #resolve: (answer: T) => void;
  readonly #reject: (error: unknown) => void;
  readonly #deadline: Tick;
  #isOpen = true;

  private constructor(
    deadlines: Deadlines,
    concerned: Concerned<T> | undefined,
    resolve: (answer: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#concerned = concerned;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = deadlines.add(this);
  }

  static ask<T>(put: () => Answer<T>, deadlines: Deadlines, concerned?: Concerned<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const carried = new Carried(deadlines, concerned, resolve, reject);
      try {
        whenAnswered(put(), carried);
      } catch (error) {
        carried.failed(error);
      }
    });
  }

  answered(answer: T): void {
    if (!this.#close()) return;
    this.#concerned?.told(answer);
    this.#resolve(answer);
  }

  failed(error: unknown): void {
    if (!this.#close()) return;
    this.#concerned?.failed();
    this.#reject(error);
  }

  late(): void {
    this.failed(tooLate());
  }

  #close(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#deadline.met();
    return true;
  }
}

/** How long one call may go on asking: whoever made it has given it up after that. */
export class Patience implements Call {
  readonly #tick: Tick;
  #isOver = false;

  constructor(deadlines: Deadlines) {
    this.#tick = deadlines.add(this);
  }

  late(): void {
    this.#isOver = true;
  }

  /** Throws when it is over. */
  check(): void {
    if (this.#isOver) throw tooLate();
  }

  end(): void {
    this.#tick.met();
  }
}

function tooLate(): TidegateError {
  return new TidegateError("timeout", "the store did not answer in time");
}
