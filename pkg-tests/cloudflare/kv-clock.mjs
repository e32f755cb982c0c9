// A clock that only the test moves, in place of this process' own: Date.now() and timers. Longer timers are deadlines
// of tests, which stay real.

const LONGEST_MS = 5_000;
const real = { now: Date.now, setTimeout, clearTimeout };

export class Clock {
  #now;
  #timers = [];
  #moving = 0;

  constructor(now = 1_790_000_000_123) {
    this.#now = now;
    Date.now = () => this.#now;
    globalThis.setTimeout = (call, ms = 0, ...args) => {
      if (ms > LONGEST_MS) return real.setTimeout(call, ms, ...args);
      const timer = { at: this.#now + ms, run: () => call(...args), ref() {}, unref() {} };
      this.#timers.push(timer);
      return timer;
    };
    globalThis.clearTimeout = (timer) => {
      real.clearTimeout(timer);
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get now() {
    return this.#now;
  }

  /** Lets so much time pass: each timer goes off at its time, and all that follows from it happens then. */
  async advance(ms) {
    const end = this.#now + ms;
    this.#moving += 1;
    await settled();
    for (let next = this.#first(); next !== undefined && next.at <= end; next = this.#first()) {
      this.#now = Math.max(this.#now, next.at);
      globalThis.clearTimeout(next);
      next.run();
      await settled();
    }
    this.#now = Math.max(this.#now, end);
    this.#moving -= 1;
  }

  /** What a promise comes to, letting time pass while that hangs on timers alone. */
  async until(promise) {
    let isOpen = true;
    const close = () => {
      isOpen = false;
    };
    promise.then(close, close);
    for (await settled(); isOpen; await settled()) {
      const next = this.#moving > 0 ? undefined : this.#first();
      if (next !== undefined) await this.advance(next.at - this.#now);
    }
    return promise;
  }

  /** No timer goes off any more, as when the request that set it is ended. */
  dropTimers() {
    this.#timers = [];
  }

  restore() {
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout });
    Date.now = real.now;
  }

  #first() {
    return this.#timers.reduce(
      (first, timer) => (first === undefined || timer.at < first.at ? timer : first),
      undefined,
    );
  }
}

/** When all that needs no time has happened. */
async function settled() {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
