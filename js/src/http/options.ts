import type { Decision } from "../decision.js";
import type { LimiterOptions } from "../limiter.js";
import type { WebRequest, WebResponse } from "../platform.js";

/** What `limitFetch` takes. */
export interface HttpLimitOptions extends Omit<LimiterOptions, "onStoreError"> {
  /** What a failed store means. Default "local": an in-process store decides until it answers again. */
  onStoreError?: "allow" | "deny" | "local";
  /** Requests that are neither counted nor refused. */
  skip?: (request: WebRequest) => boolean;
  /** Answers in place of the 429; headers that it does not set itself are added. */
  refuse?: (decision: Decision) => WebResponse;
  /** Whose budget. Default: the client's address, by ipKey. */
  key?: (request: WebRequest) => string;
  /** Units that a request costs. Default 1. */
  cost?: (request: WebRequest) => number;
  /** "draft" (RateLimit-Policy and RateLimit, the default), "legacy" (X-RateLimit-*), both, or neither. */
  headers?: "draft" | "legacy" | "both" | false;
  /**
   * Which proxies' x-forwarded-for to believe: their number, or their addresses and CIDRs. Read from the right; fewer
   * hops than told: the peer's address. "cloudflare" reads cf-connecting-ip. Default: none.
   */
  trustProxy?: number | string[] | "cloudflare";
}

/** The same for a framework, whose own request is what the functions are given. */
export type FrameworkLimitOptions<Q, A> = Omit<
  HttpLimitOptions,
  "key" | "cost" | "skip" | "refuse"
> & {
  key?: (request: Q) => string;
  cost?: (request: Q) => number;
  skip?: (request: Q) => boolean;
  /** Answers in place of the 429. Express and Fastify give the response, too, with its status and headers set. */
  refuse?: (decision: Decision, request: Q, response?: any) => A;
};
