import type { Decision } from "../decision.js";

export const STATUS = 429;
export const PROBLEM_TYPE = "application/problem+json";

const EXCEEDED = {
  type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
  title: "Request cannot be satisfied as assigned quota has been exceeded",
};
const OTHER = { type: "about:blank", title: "Too Many Requests" };

/** The body of a refusal: a problem document, of the draft's type where a limit is what was exceeded. */
export function problem({ reason, limitName, retryAfterMs }: Decision): string {
  const isExceeded = reason === "limited" || reason === "never";
  return JSON.stringify({
    ...(isExceeded ? EXCEEDED : OTHER),
    status: STATUS,
    reason,
    // JSON has no infinity: null, where no wait helps.
    retryAfterMs,
    ...(isExceeded && { "violated-policies": [limitName] }),
  });
}
