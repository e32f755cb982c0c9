import type { Decision } from "../decision.js";
import type { Limits } from "../limits.js";
import { type Duration, durationMs } from "../options.js";

export type Style = "draft" | "legacy" | "both" | false;

/** The largest Integer of a structured field. */
const MOST = 999_999_999_999_999;

/**
 * What responses tell of limits: the fields of draft-ietf-httpapi-ratelimit-headers-11, their older names,
 * and Retry-After where a request is refused.
 */
export class Fields {
  readonly #draft: boolean;
  readonly #legacy: boolean;
  readonly #policy: string;

  constructor(limits: Limits, style: Style) {
    this.#draft = style === "draft" || style === "both";
    this.#legacy = style === "legacy" || style === "both";
    this.#policy = limits.options
      .map(({ limit, window }, at) => policyItem(limits.names[at] as string, limit, window))
      .join(", ");
  }

  of(decision: Decision): Record<string, string> {
    const { allowed, reason, retryAfterMs } = decision;
    const fields: Record<string, string> = {};
    // Where the store failed nobody knows what remains, and none of it would be a wrong guess.
    const isKnown = reason !== "store-error" && reason !== "timeout";
    if (this.#draft) {
      fields["RateLimit-Policy"] = this.#policy;
      if (isKnown) fields.RateLimit = limitItem(decision);
    }
    if (this.#legacy && isKnown) Object.assign(fields, legacyFields(decision));
    if (!allowed && retryAfterMs !== Infinity) {
      fields["Retry-After"] = String(Math.max(1, seconds(retryAfterMs)));
    }
    return fields;
  }
}

/** Lists, which another limit on the same request adds its own item to. */
export function isList(name: string): boolean {
  return name.startsWith("RateLimit");
}

/** A limit as it is configured. Windows are whole seconds: shorter ones are told as what that many of them admit. */
function policyItem(name: string, limit: number, window: Duration): string {
  const windowMs = durationMs(window, 'option "window"');
  let windows = 1;
  while ((windows * windowMs) % 1000 !== 0) windows += 1;
  return `${quoted(name)};q=${integer(limit * windows)};w=${(windows * windowMs) / 1000}`;
}

/** What is left, and for how long: until the next try makes sense, or else until the budget is whole. */
function limitItem({ limitName, remaining, retryAfterMs, resetAfterMs }: Decision): string {
  const isWaiting = retryAfterMs > 0 && retryAfterMs !== Infinity;
  const untilMs = isWaiting ? retryAfterMs : resetAfterMs;
  return `${quoted(limitName)};r=${integer(remaining)};t=${integer(seconds(untilMs))}`;
}

function legacyFields({ limit, remaining, resetAfterMs }: Decision): Record<string, string> {
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    // As most servers that have it: the second of the epoch in which the budget is whole.
    "X-RateLimit-Reset": String(seconds(Date.now() + resetAfterMs)),
  };
}

/** A String of a structured field, which holds printable ASCII only. */
function quoted(name: string): string {
  const wellFormed = name.replace(/\p{Surrogate}/gu, "\ufffd");
  const ascii = wellFormed.replace(/[^\x20-\x7e]+/g, encodeURIComponent);
  return `"${ascii.replace(/["\\]/g, "\\$&")}"`;
}

function integer(value: number): number {
  return Math.min(value, MOST);
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
