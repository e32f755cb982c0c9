import type { Decision } from "../decision.js";
import { bad } from "../options.js";
import type { HttpLimitOptions } from "./options.js";
import type { WebRequest, WebResponse } from "./platform.js";
import { PROBLEM_TYPE, problem, STATUS } from "./problem.js";
import type { Reader } from "./reader.js";
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
  const { refuse = refusal } = options;
  return async (request) => {
    const { decision, headers } = await limit.judge(request);
    const response = decision.allowed ? null : withHeaders(refuse(decision), headers);
    return { response, decision, headers };
  };
}

/** The answer to a refused request. */
export function refusal(decision: Decision): Response {
  const headers = { "content-type": PROBLEM_TYPE };
  return new Response(problem(decision), { status: STATUS, headers });
}

/** A refusal with the headers that it does not set itself. */
export function withHeaders(refused: unknown, headers: Record<string, string>): Response {
  const given = refused as Response | undefined;
  if (typeof given?.headers?.get !== "function") {
    bad("bad_argument", 'what option "refuse" answers', refused, "a Response");
  }
  // A copy: the headers of a response that was fetched, or made by Response.redirect(), cannot be changed.
  const response = new Response(given.body, given);
  for (const [name, value] of Object.entries(headers)) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}
