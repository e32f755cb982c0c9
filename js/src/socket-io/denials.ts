import type { DenialLimit } from "./settings.js";

/** The latest denials of one socket: as many as are allowed, and when each of them was. */
export class Denials {
  readonly #limit: DenialLimit;
  readonly #times: number[] = [];
  #next = 0;

  constructor(limit: DenialLimit) {
    this.#limit = limit;
  }

  /** Counts one; true when there were too many within too short a time. */
  add(now: number): boolean {
    const { denials, windowMs } = this.#limit;
    this.#times[this.#next] = now;
    this.#next = (this.#next + 1) % denials;
    const oldest = this.#times[this.#next];
    return this.#times.length === denials && oldest !== undefined && now - oldest < windowMs;
  }
}
