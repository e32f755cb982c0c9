import { isolatesRequests } from "#wasm";

/** What may come too late. */
export interface Call {
  late(): void;
}

/** Ends calls that take too long. All take as long at most, so that they are over in the order in which they began. */
export class Deadlines {
  readonly #timeoutMs: number;
  #timer: Timer;
  #tick: Tick | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#timer = new Timer(timeoutMs);
  }

  /** Tells the call when it is late, unless `met` is called before on what this answers. */
  add(call: Call): Tick {
    if (this.#tick === undefined) {
      this.#tick = new Tick(this.#timer, performance.now() + this.#timeoutMs);
      queueMicrotask(this.#endTick);
    }
    this.#tick.add(call);
    return this.#tick;
  }

  #endTick = (): void => {
    this.#tick = undefined;
    // A timer that one request started would end with it, and no other's calls may hang on it.
    if (isolatesRequests) this.#timer = new Timer(this.#timeoutMs);
  };
}

/** The calls of one tick. */
export class Tick {
  readonly dueAt: number;
  readonly #timer: Timer;
  #calls: Call[] = [];
  #open = 0;

  constructor(timer: Timer, dueAt: number) {
    this.#timer = timer;
    this.dueAt = dueAt;
  }

  get isOpen(): boolean {
    return this.#open > 0;
  }

  add(call: Call): void {
    this.#calls.push(call);
    this.#open += 1;
    this.#timer.hold(this);
  }

  /** One of the calls is over. */
  met(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#calls = [];
    this.#timer.release();
  }

  /** Calls that are over are told too, and do nothing. */
  end(): void {
    for (const call of this.#calls) call.late();
  }
}

/** One timer for the ticks, set for the oldest. It keeps no process alive while nothing is open. */
class Timer {
  readonly #timeoutMs: number;
  #ticks: Tick[] = [];
  #open = 0;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** One more call of the tick is open. */
  hold(tick: Tick): void {
    if (this.#ticks.at(-1) !== tick) this.#ticks.push(tick);
    this.#open += 1;
    if (this.#handle === undefined) this.#handle = setTimeout(this.#end, this.#timeoutMs);
    else if (this.#open === 1) this.#handle.ref();
  }

  /** Setting a timer costs more than a call: where it can be left alone, it stays for the calls to come. */
  release(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    if (typeof this.#handle?.unref === "function") this.#handle.unref();
    else this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
    this.#ticks = [];
  }

  #end = (): void => {
    this.#handle = undefined;
    const now = performance.now();
    // The oldest is what the timer was set for, whatever another clock says.
    let next: Tick | undefined;
    do {
      this.#ticks.shift()?.end();
      next = this.#ticks[0];
    } while (next !== undefined && (!next.isOpen || next.dueAt <= now));
    // Those who were told may have asked again, and set it.
    clearTimeout(this.#handle);
    this.#handle = next && setTimeout(this.#end, next.dueAt - now);
  };
}
