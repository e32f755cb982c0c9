/** What may come too late. */
export interface Call {
  late(): void;
}

/**
 * Ends calls that take too long. Those that are made in the same tick share one timer, which is gone as soon as
 * all of them have been answered.
 */
export class Deadlines {
  readonly #timeoutMs: number;
  #tick: Tick | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `late` when the time is over, unless `met` was called on what this answers. */
  add(call: Call): Tick {
    if (this.#tick === undefined) {
      this.#tick = new Tick(this.#timeoutMs);
      queueMicrotask(this.#endTick);
    }
    this.#tick.add(call);
    return this.#tick;
  }

  #endTick = (): void => {
    this.#tick = undefined;
  };
}

/** The calls of one tick. */
export class Tick {
  readonly #timeoutMs: number;
  readonly #calls: Call[] = [];
  #open = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  add(call: Call): void {
    this.#timer ??= setTimeout(this.#end, this.#timeoutMs);
    this.#calls.push(call);
    this.#open += 1;
  }

  /** One of the calls is over. */
  met(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Calls that are over are told too, and do nothing. */
  #end = (): void => {
    for (const call of this.#calls) call.late();
  };
}
