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

/** So many ticks are kept without looking whether they are over. */
const FEW_TICKS = 64;

/** One timer for the ticks, set for the oldest. It keeps no process alive while nothing is open. */
class Timer {
  readonly #timeoutMs: number;
  #ticks: Tick[] = [];
  #most = FEW_TICKS;
  #open = 0;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** One more call of the tick is open. */
  hold(tick: Tick): void {
    if (this.#ticks.at(-1) !== tick) this.#add(tick);
    this.#open += 1;
    if (this.#handle === undefined) this.#set(tick, this.#timeoutMs);
    else if (this.#open === 1) this.#handle.ref();
  }

  /** Ticks that are over are let go when there are twice as many as were open the last time. */
  #add(tick: Tick): void {
    if (this.#ticks.length >= this.#most) {
      this.#ticks = this.#ticks.filter(({ isOpen }) => isOpen);
      this.#most = Math.max(FEW_TICKS, 2 * this.#ticks.length);
    }
    this.#ticks.push(tick);
  }

  /** Setting a timer costs more than a call: where it can be left alone, it stays for the calls to come. */
  release(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    if (typeof this.#handle?.unref === "function") this.#handle.unref();
    else this.#stop();
  }

  #set(tick: Tick, ms: number): void {
    this.#handle = setTimeout(this.#isTime, ms, tick.dueAt);
  }

  #stop(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
    this.#ticks = [];
  }

  /** Where this process itself was held up, answers may be waiting to be read: those count first. */
  #isTime = (dueAt: number): void => {
    if (typeof setImmediate === "function") setImmediate(this.#end, dueAt);
    else this.#end(dueAt);
  };

  /** Ends what was due when the timer was set for, whatever the clock says, and what is due by now. */
  #end = (dueAt: number): void => {
    const now = performance.now();
    const isOver = (tick: Tick) => !tick.isOpen || tick.dueAt <= Math.max(dueAt, now);
    // Those who are told may ask again meanwhile.
    while (this.#ticks[0] !== undefined && isOver(this.#ticks[0])) this.#ticks.shift()?.end();
    const [next] = this.#ticks;
    clearTimeout(this.#handle);
    this.#handle = undefined;
    if (next !== undefined) this.#set(next, next.dueAt - now);
  };
}
