import type { Decision } from "../decision.js";
import type { WebRequest, WebResponse } from "../platform.js";
import type { HttpLimitOptions } from "./options.js";
import type { Reader } from "./reader.js";
import { refusal } from "./refusal.js";
import { RequestLimit } from "./request-limit.js";

const reader: Reader<WebRequest> = {
  header: (request, name) => request.headers.get(name) ?? undefined,
};

/**
 * A limit for servers that answer a Request with a Response: Workers, service workers, Deno, Bun and others.
 *
 * @returns a function whose `response` is null for a request that is admitted; `headers` are then to be added to its
 * answer. Otherwise `response` is what to answer. A Request tells no address, so that `key` or `trustProxy` is needed.
 * @example
 * const limit = limitFetch({ limit: { limit: 100, window: "1m" }, trustProxy: "cloudflare" });
 * const { response, headers } = await limit(request);
 * return response ?? new Response("hello", { headers });
 */
export function limitFetch(options: HttpLimitOptions): (request: WebRequest) => Promise<{
  response: WebResponse | null;
  decision: Decision;
  headers: Record<string, string>;
}> {
  const limit = new RequestLimit(options, reader);
  const { refuse } = options;
  return async (request) => {
    const verdict = await limit.judge(request);
    const { decision } = verdict;
    if (decision.allowed) return { response: null, ...verdict };
    return { response: await refusal(verdict, refuse && (() => refuse(decision))), ...verdict };
  };
}
