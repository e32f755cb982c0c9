import type { RunScript, Script } from "./client.js";
import { isCluster } from "./gen/script.js";
import { slotsBehind } from "./slot.js";

/**
 * Which keys may travel in one call: on a cluster those of one slot, on a single server all. Until the
 * server has told which it is, slots are kept apart, which is right on both.
 */
export class Grouping {
  readonly #run: RunScript;
  readonly #slotOf: (key: string) => number;
  #cluster: boolean | undefined;
  #asking = false;

  /** `keyPrefix` is what the client puts before every key. */
  constructor(run: RunScript, cluster: boolean | undefined, keyPrefix: string) {
    this.#run = run;
    this.#slotOf = slotsBehind(keyPrefix);
    this.#cluster = cluster;
  }

  /** Whether all keys are known to travel together. */
  get isOne(): boolean {
    return this.#cluster === false;
  }

  of(key: string): number {
    if (this.#cluster === false) return 0;
    if (this.#cluster === undefined && !this.#asking) void this.#ask(isCluster, key);
    return this.#slotOf(key);
  }

  /** A server that does not tell is asked again with the next operation. */
  async #ask(script: Script, key: string): Promise<void> {
    this.#asking = true;
    try {
      const cluster = await this.#run(script, [key], []);
      // Clients may be told to answer numbers as text.
      const told = String(cluster);
      if (told === "0" || told === "1") this.#cluster = told === "1";
    } catch {
      // The operations themselves tell of a server that fails.
    } finally {
      this.#asking = false;
    }
  }
}
