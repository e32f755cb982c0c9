import type { BurstDetector } from "../burst-detector.js";
import { show } from "../errors.js";
import type { Observation } from "../store.js";
import { answered } from "./answer.js";
import type { ClientAddresses } from "./client-address.js";
import { pause } from "./pause.js";
import { report, type Socket } from "./server.js";

export interface BurstAlarmOptions {
  readonly detector: BurstDetector;
  readonly addresses: ClientAddresses;
  /** Whether a socket's traffic is watched. */
  readonly when: (socket: Socket) => unknown;
  readonly onBurst: (burst: { identity: string; count: number }) => unknown;
}

const RETRIES = 5;
const FIRST_PAUSE_MS = 100;

/** Counts the traffic of those who are nobody yet, by address, and tells of a burst once in the whole fleet. */
export class BurstAlarm {
  readonly #options: BurstAlarmOptions;
  /** What is still to be counted; there while the detector counts for that address. */
  readonly #uncounted = new Map<string, number>();
  #isClosed = false;

  constructor(options: BurstAlarmOptions) {
    this.#options = options;
  }

  /** Something came from this socket. False when the user's function cannot tell whether that is to be watched. */
  notice(socket: Socket): boolean {
    try {
      if (this.#isWatched(socket)) this.#add(this.#options.addresses.of(socket.conn) ?? "unknown");
      return true;
    } catch (error) {
      report(socket, error);
      return false;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#options.detector.close();
  }

  #isWatched(socket: Socket): boolean {
    const isWatched = answered(this.#options.when(socket), "burst.when");
    if (typeof isWatched === "boolean") return isWatched;
    throw new TypeError(`burst.when must answer true or false, but answered ${show(isWatched)}`);
  }

  #add(identity: string): void {
    const uncounted = this.#uncounted.get(identity);
    this.#uncounted.set(identity, (uncounted ?? 0) + 1);
    if (uncounted === undefined) void this.#count(identity);
  }

  /** One observation at a time for an address: a flood is counted in as few as the store can take. */
  async #count(identity: string): Promise<void> {
    const next = (): number => this.#uncounted.get(identity) ?? 0;
    for (let weight = next(); weight > 0; weight = next()) {
      this.#uncounted.set(identity, 0);
      const observed = await this.#observe(identity, weight);
      if (observed?.fired) void this.#tell(identity, observed.count);
    }
    this.#uncounted.delete(identity);
  }

  /** Named by a nonce: where only the reply was lost, the next try is told that this is the one that fired. */
  #observe(identity: string, weight: number): Promise<Observation | undefined> {
    const nonce = crypto.randomUUID();
    return this.#tried(() => this.#options.detector.observe(identity, { weight, nonce }));
  }

  async #tell(identity: string, count: number): Promise<void> {
    await this.#tried(async () => this.#options.onBurst({ identity, count }));
  }

  /** What comes of it in the end; undefined when nothing does. */
  async #tried<T>(attempt: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = FIRST_PAUSE_MS, tries = 0; ; pauseMs *= 2, tries += 1) {
      try {
        return await attempt();
      } catch {
        if (tries === RETRIES || this.#isClosed) return undefined;
        await pause(pauseMs);
      }
    }
  }
}
