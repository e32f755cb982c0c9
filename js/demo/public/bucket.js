/** What a bucket holds, carried on from the gateway's last decision: between two decisions only time changes it. */
export class Bucket {
  limit;
  leaks;
  /** How long it takes to win back one unit (leaky bucket) or all of them (fixed window). */
  periodMs;
  #used = 0;
  #emptyAt = 0;

  constructor({ algorithm, limit, window }) {
    this.limit = limit;
    this.leaks = algorithm === "leaky-bucket";
    this.periodMs = this.leaks ? window / limit : window;
  }

  decided({ remaining, resetAfterMs }, now) {
    this.#used = this.limit - remaining;
    this.#emptyAt = now + resetAfterMs;
  }

  emptyIn(now) {
    return Math.max(0, this.#emptyAt - now);
  }

  /** Units in use: falls steadily in a leaky bucket, all at once at the end of a window. */
  level(now) {
    if (this.leaks) return this.emptyIn(now) / this.periodMs;
    return this.emptyIn(now) > 0 ? this.#used : 0;
  }

  /** The wait until more is left than now; 0 when all is. */
  nextIn(now) {
    return (
      this.emptyIn(now) -
      Math.max(0, Math.ceil(this.emptyIn(now) / this.periodMs) - 1) * this.periodMs
    );
  }
}
