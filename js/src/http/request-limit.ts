import type { Decision } from "../decision.js";
import { show, TidegateError } from "../errors.js";
import { Limiter, type LimiterOptions } from "../limiter.js";
import { type Limits, limitsFrom } from "../limits.js";
import { bad, checkOptions, functionOf, oneOf } from "../options.js";
import { Fields, type Style } from "./fields.js";
import type { FrameworkLimitOptions } from "./options.js";
import { clientKeyOf, type Reader } from "./reader.js";

const LIMITER = ["limit", "store", "prefix", "timeout", "dryRun", "bestEffort"];
const KNOWN = [
  ...LIMITER,
  "onStoreError",
  "skip",
  "refuse",
  "key",
  "cost",
  "headers",
  "trustProxy",
];

/** What is decided of a request, and told of it. */
export interface Verdict {
  readonly decision: Decision;
  readonly headers: Record<string, string>;
}

/** The limit of a framework's requests: its options, checked, and what is made of them. */
export class RequestLimit<Q> {
  readonly #limiter: Limiter;
  readonly #limits: Limits;
  readonly #fields: Fields;
  readonly #key: (request: Q) => string;
  readonly #cost: ((request: Q) => number) | undefined;
  readonly #skip: ((request: Q) => boolean) | undefined;

  constructor(options: FrameworkLimitOptions<Q, unknown>, reader: Reader<Q>) {
    checkOptions(options, KNOWN);
    const actions = ["allow", "deny", "local"] as const;
    const onStoreError = oneOf(options.onStoreError, "onStoreError", actions, "local");
    const given = Object.entries(options).filter(([name]) => LIMITER.includes(name));
    this.#limiter = new Limiter({
      ...(Object.fromEntries(given) as unknown as LimiterOptions),
      onStoreError,
    });
    this.#limits = limitsFrom(options.limit);
    this.#fields = new Fields(this.#limits, styleOf(options.headers));
    const byAddress = clientKeyOf(options.trustProxy, reader);
    this.#key = functionOf(options.key, "key") ?? addressed(byAddress, options.trustProxy);
    this.#cost = functionOf(options.cost, "cost");
    this.#skip = functionOf(options.skip, "skip");
    functionOf(options.refuse, "refuse");
  }

  /** Decides and charges. What the user's own functions throw, or answer wrongly, is an error and no refusal. */
  async judge(request: Q): Promise<Verdict> {
    if (this.#isSkipped(request)) return { decision: this.#untouched(), headers: {} };
    const key = this.#key(request);
    const options = this.#cost === undefined ? undefined : { cost: this.#cost(request) };
    const decision = await this.#limiter.consume(key, options);
    return { decision, headers: this.#fields.of(decision) };
  }

  #isSkipped(request: Q): boolean {
    const answer: unknown = this.#skip?.(request) ?? false;
    if (typeof answer === "boolean") return answer;
    // A promise would count as true, and everything would be let through.
    bad("bad_argument", 'what option "skip" answers', answer, "true or false");
  }

  /** What stands for the decision about a request that is not counted. */
  #untouched(): Decision {
    const limit = this.#limits.capacities[0] as number;
    const limitName = this.#limits.names[0] as string;
    const whole = { remaining: limit, retryAfterMs: 0, resetAfterMs: 0 };
    return { allowed: true, reason: "ok", limit, ...whole, limitName, local: true, dryRun: false };
  }
}

function styleOf(value: unknown): Style {
  if (value === undefined) return "draft";
  if (["draft", "legacy", "both", false].includes(value as Style)) return value as Style;
  bad("bad_policy", 'option "headers"', value, '"draft" or "legacy" or "both" or false');
}

function addressed<Q>(
  byAddress: ((request: Q) => string | undefined) | undefined,
  trustProxy: unknown,
): (request: Q) => string {
  if (byAddress === undefined) {
    const expected =
      'a function, since requests tell no address here; or tell whose word to take for it with "trustProxy"';
    bad("bad_policy", 'option "key"', undefined, expected);
  }
  return (request) => byAddress(request) ?? unaddressed(trustProxy);
}

/** One budget for all who have no address would be anybody's to use up. */
function unaddressed(trustProxy: unknown): never {
  throw new TidegateError(
    "bad_argument",
    `the request has no client address ("trustProxy" is ${show(trustProxy)}); option "key" can name the client otherwise`,
  );
}
