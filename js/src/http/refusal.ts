import { bad } from "../options.js";
import type { WebResponse } from "../platform.js";
import { PROBLEM_TYPE, problem, STATUS } from "./problem.js";
import type { Verdict } from "./request-limit.js";

/** The answer to a refused request: what the user's own `refuse` answers, or else a problem document. */
export async function refusal(
  { decision, headers }: Verdict,
  refuse: (() => unknown) | undefined,
): Promise<WebResponse> {
  if (refuse !== undefined) return withHeaders(await refuse(), headers);
  const all = { ...headers, "Content-Type": PROBLEM_TYPE };
  return new Response(problem(decision), { status: STATUS, headers: all });
}

/** The same response with the headers that it does not set itself. */
function withHeaders(refused: unknown, headers: Record<string, string>): WebResponse {
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
