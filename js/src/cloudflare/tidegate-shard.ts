import { show } from "../errors.js";
import type { WebRequest, WebResponse } from "../platform.js";
import { stores } from "../stores.js";
import { run_batch } from "../wasm/gen/glue.js";
import { shardsFrom, shardsSetting } from "./setting.js";
import { type Storage, Table } from "./table.js";

const SWEEP_AFTER_MS = 3_600_000;

/** Where a deployment's number of shards is kept, and that it never goes. */
const SHARDS = "shards";
const NEVER = Number.MAX_SAFE_INTEGER;

type Answer = readonly [status: number, text: string];

/**
 * The Durable Object class behind `DurableObjectStore`: it runs the core on rows of its own, a batch in one
 * transaction with nothing to wait for in it. Wire and rows are those of the Rust Worker's class, so each can take
 * the other's place.
 *
 * A row that is over counts for nothing from that moment on, and is swept away by an alarm, an hour later at the
 * earliest. An object whose last row went deletes all it has.
 *
 * @example
 * export { TidegateShard } from "tidegate/cloudflare"; // in the Worker's module, and in its wrangler.toml:
 * // [[durable_objects.bindings]] name = "TIDEGATE_SHARD", class_name = "TidegateShard"
 * // [[migrations]] tag = "v1", new_sqlite_classes = ["TidegateShard"]
 */
export class TidegateShard {
  readonly #storage: Storage;
  readonly #env: unknown;
  readonly #table: Table;
  readonly #since = Date.now();
  /** Decisions by their reasons, duplicates, bursts, errors. */
  #tally = new Float64Array(7);
  /** Whether an alarm is known to be set. */
  #isArmed = false;

  constructor(state: unknown, env: unknown) {
    this.#storage = (state as { storage: Storage }).storage;
    this.#env = env;
    this.#table = new Table(this.#storage);
  }

  /** Runs a batch; or tells what was counted, or how many shards there are. */
  async fetch(request: WebRequest): Promise<WebResponse> {
    const { url } = request;
    if (url.endsWith("/tally")) return new Response([...this.#tally, this.#since].join(" "));
    const body = await request.text();
    if (url.endsWith("/shards")) return response(this.#tried(() => this.#shards(body)));
    const answer = this.#tried(() => this.#run(body));
    // What was charged is answered, whatever becomes of the alarm.
    if (this.#table.isMade && !this.#isArmed) await this.#arm();
    return response(answer);
  }

  /** Sweeps. Alarms that fail are tried again a few times only, so another one is set. */
  async alarm(): Promise<void> {
    try {
      await this.#sweep();
    } catch (error) {
      await this.#wake(Date.now() + SWEEP_AFTER_MS);
      throw error;
    }
  }

  /** Nobody waits from the first row that is read to the last that is written. */
  #tried(answer: () => Answer): Answer {
    try {
      this.#table.make();
      return answer();
    } catch (error) {
      this.#table.doubt();
      return [500, show(error)];
    }
  }

  #run(batch: string): Answer {
    const shards = shardsSetting(this.#env);
    if (typeof shards === "string") return [503, shards];
    const tally = this.#tally.slice();
    stores();
    const run = () => run_batch(this.#table, shards, batch, Date.now(), tally);
    // An operation alone writes a row at most, and needs no transaction around it. Where the rows fail in the
    // middle of others, what was written is undone.
    const isLone = batch.indexOf("\n") === batch.lastIndexOf("\n");
    const reply = isLone ? run() : this.#storage.transactionSync(run);
    if (reply === 409) return [409, `this deployment has ${shards} shards`];
    if (typeof reply === "number") return [reply, "not a batch of version 1"];
    this.#tally = tally;
    return [200, reply];
  }

  /** The deployment's number: that of the setting, or the first that was ever asked about. */
  #shards(asked: string): Answer {
    const setting = shardsSetting(this.#env);
    if (typeof setting === "string") return [503, setting];
    if (setting !== undefined) return [200, String(setting)];
    const known = this.#table.get(SHARDS);
    if (known !== undefined) return [200, known];
    if (shardsFrom(asked) === undefined) return [400, "not a number of shards"];
    this.#table.put(SHARDS, asked, NEVER, true);
    return [200, asked];
  }

  /** Sees to it that there is an alarm; the next request tries again where there can be none. */
  async #arm(): Promise<void> {
    this.#isArmed = true;
    try {
      if ((await this.#storage.getAlarm()) === null) await this.#wake(Date.now() + SWEEP_AFTER_MS);
    } catch {
      this.#isArmed = false;
    }
  }

  async #wake(at: number): Promise<void> {
    await this.#storage.setAlarm(at);
    this.#isArmed = true;
  }

  /** Deletes what is over; everything, when that was the last. What never goes needs no alarm. */
  async #sweep(): Promise<void> {
    this.#isArmed = false;
    const now = Date.now();
    this.#table.make();
    const next = this.#table.sweep(now);
    if (next !== undefined) {
      if (next < NEVER) await this.#wake(Math.max(next, now + SWEEP_AFTER_MS));
      return;
    }
    this.#table.doubt();
    await this.#storage.deleteAll();
  }
}

function response([status, text]: Answer): Response {
  return new Response(text, { status });
}
