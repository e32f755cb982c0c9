import { digest } from "./core.js";
import { show, TidegateError } from "./errors.js";
import { emit, isHeard } from "./events.js";
import { Guarded } from "./guarded.js";
import { MemoryStore } from "./memory-store.js";
import { counted } from "./metrics.js";
import {
  bad,
  checkCost,
  checkKey,
  checkOptions,
  countOf,
  type Duration,
  durationMs,
  isPlainObject,
  oneOf,
  prefixOf,
  textBytes,
  timeoutMs,
} from "./options.js";
import { type BurstDriver, driverOf, type Observation, type Store } from "./store.js";

export interface BurstDetectorOptions {
  /** Default: a new MemoryStore. */
  store?: Store;
  /** Observations within one window that trigger. */
  threshold: number;
  window: Duration;
  /**
   * After a firing, none again for this identity for this long, across windows, and in no case twice in one
   * window. Default (also for 0): tumbling: the rest of the window; sliding: one window.
   */
  cooldown?: Duration;
  /**
   * "tumbling" (default) counts in windows aligned to the epoch of the store's clock. "sliding" has no seam:
   * it never misses a window that holds the threshold, and looks back at most a sixteenth of a window further.
   */
  trigger?: "tumbling" | "sliding";
  /** Identities are stored hashed; with a secret, by HMAC (an unsalted hash of an address can be reversed). */
  secret?: string;
  prefix?: string;
  /** "ignore": an observation that a failed store did not take has not fired. A full MemoryStore throws all the same. */
  onStoreError?: "throw" | "ignore";
  timeout?: Duration;
}

/** Where observations are counted. */
export interface RateStore {
  observe(identity: string, options?: { weight?: number; nonce?: string }): Promise<Observation>;
  close(): Promise<void>;
}

const KNOWN = [
  "store",
  "threshold",
  "window",
  "cooldown",
  "trigger",
  "secret",
  "prefix",
  "onStoreError",
  "timeout",
];
const DEFAULT_TIMEOUT_MS = 500;
const NOTHING: Observation = Object.freeze({
  fired: false,
  count: 0,
  windowEndsInMs: 0,
  replay: false,
});

/**
 * Counts observations of identities, and fires once per burst in the whole fleet.
 *
 * @example
 * const failures = new BurstDetector({ threshold: 100, window: "1m", cooldown: "10m", secret });
 * if ((await failures.observe(ipKey(address))).fired) await page("login failures from one address");
 */
export class BurstDetector implements RateStore {
  readonly #bursts: BurstDriver;
  readonly #guarded: Guarded;
  readonly #policy: string;
  readonly #secret: Uint8Array | undefined;
  #closed = false;

  constructor(options: BurstDetectorOptions) {
    checkOptions(options, KNOWN);
    this.#policy = policyFrom(options);
    this.#secret = secretFrom(options.secret);
    const onStoreError = oneOf(options.onStoreError, "onStoreError", ["throw", "ignore"], "throw");
    const action = onStoreError === "throw" ? "throw" : "allow";
    const timeout = timeoutMs(options.timeout, DEFAULT_TIMEOUT_MS);
    const prefix = prefixOf(options.prefix);
    const store = options.store === undefined ? new MemoryStore() : options.store;
    const driver = driverOf(store);
    if (store.capabilities.atomicity !== "exact") {
      const why = "the store is best-effort: it cannot promise that an alarm fires once";
      throw new TidegateError("unsupported", why);
    }
    this.#guarded = new Guarded("burst detector", action, timeout, store.capabilities.synchronous);
    this.#bursts = driver.bursts(prefix, timeout);
  }

  /**
   * Counts an observation.
   *
   * @param options.weight observations that this one stands for; default 1.
   * @param options.nonce names the attempt: a retry with the firing's nonce is told again that it fired.
   */
  async observe(
    identity: string,
    options?: { weight?: number; nonce?: string },
  ): Promise<Observation> {
    if (this.#closed) throw new TidegateError("closed", "the burst detector is closed");
    checkKey(identity, "identity");
    const { weight, nonce } = attemptFrom(options);
    const hashed = digest(textBytes(identity), this.#secret);
    return this.#guarded.ask(
      () => this.#bursts.observe(hashed, `${this.#policy};${weight};${nonce ?? ""}`),
      (observation) => told(identity, observation),
      ({ action, error }) => {
        if (action === "throw") throw error;
        return NOTHING;
      },
    );
  }

  /** Idempotent. What was counted stays counted. */
  async close(): Promise<void> {
    this.#closed = true;
  }
}

/** Never fires; for where detection is switched off. */
export class NoopBurstDetector implements RateStore {
  async observe(
    identity: string,
    options?: { weight?: number; nonce?: string },
  ): Promise<Observation> {
    checkKey(identity, "identity");
    attemptFrom(options);
    return NOTHING;
  }

  async close(): Promise<void> {}
}

function told(identity: string, observation: Observation): Observation {
  if (!observation.replay) counted.observations += 1;
  if (observation.fired && !observation.replay) counted.bursts += 1;
  if (observation.fired && isHeard()) emit({ type: "burst", identity, observation });
  return observation;
}

/** What makes an alarm, in the wire's words. */
function policyFrom(options: BurstDetectorOptions): string {
  const { cooldown } = options;
  const cooldownMs =
    cooldown === undefined || cooldown === 0 ? 0 : durationMs(cooldown, 'option "cooldown"');
  const trigger = oneOf(options.trigger, "trigger", ["tumbling", "sliding"], "tumbling");
  const windowMs = durationMs(options.window, 'option "window"');
  const letter = trigger === "sliding" ? "s" : "t";
  return `O;${letter};${countOf(options.threshold, "threshold")};${windowMs};${cooldownMs}`;
}

function secretFrom(secret: unknown): Uint8Array | undefined {
  if (secret === undefined) return undefined;
  if (typeof secret !== "string" || secret === "") {
    // The value itself does not belong into an error's text.
    const given = secret === "" ? "empty" : show(typeof secret);
    throw new TidegateError(
      "bad_policy",
      `option "secret" must be a non-empty string, but is ${given}`,
    );
  }
  return textBytes(secret);
}

function attemptFrom(options: unknown): { weight: number; nonce: string | undefined } {
  if (options === undefined) return { weight: 1, nonce: undefined };
  if (!isPlainObject(options)) bad("bad_argument", "options", options, "a plain object");
  for (const name of Object.keys(options)) {
    if (name !== "weight" && name !== "nonce") {
      bad("bad_argument", "options", name, 'only { "weight", "nonce" }');
    }
  }
  const { weight = 1, nonce } = options;
  checkCost(weight, "weight");
  if (nonce === undefined) return { weight, nonce };
  checkKey(nonce, "nonce");
  return { weight, nonce: digest(textBytes(nonce)) };
}
