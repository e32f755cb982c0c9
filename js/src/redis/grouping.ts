import type { RunScript, Script } from "./client.js";
import { isCluster } from "./gen/script.js";
import { slotOf } from "./slot.js";

/**
 * Which keys may travel in one call: on a cluster those of one slot, on a single server all. Until the
 * server has told which it is, slots are kept apart, which is right on both.
 */
export class Grouping {
  readonly #run: RunScript;
  #cluster: boolean | undefined;
  #asking = false;

  constructor(run: RunScript, cluster: boolean | undefined) {
    this.#run = run;
    this.#cluster = cluster;
  }

  of(key: string): number {
    if (this.#cluster === false) return 0;
    if (this.#cluster === undefined && !this.#asking) void this.#ask(isCluster, key);
    return slotOf(key);
  }

  /** A server that does not tell is asked again with the next operation. */
  async #ask(script: Script, key: string): Promise<void> {
    this.#asking = true;
    try {
      const cluster = await this.#run(script, [key], []);
      if (cluster === 0 || cluster === 1) this.#cluster = cluster === 1;
    } catch {
      // The operations themselves tell of a server that fails.
    } finally {
      this.#asking = false;
    }
  }
}
