import { TidegateError } from "../errors.js";

/** What the server answered to a command. */
export interface Answer {
  readonly status: number;
  /** The JSON that was answered; undefined where it was none. */
  readonly body: unknown;
}

/** The command's result; whatever is none is thrown as what it says. */
export function resultOf(answer: Answer): unknown {
  const { status, body } = answer;
  if (status >= 200 && status < 300 && isObject(body)) {
    if ("result" in body && body.error === undefined) return body.result;
  }
  throw errorOf(answer);
}

export function errorOf({ status, body }: Answer): TidegateError {
  const said = isObject(body) && typeof body.error === "string" ? body.error : undefined;
  const cause = said === undefined ? undefined : { cause: new Error(said) };
  return new TidegateError("store", meaning(status, said), cause);
}

function meaning(status: number, said: string | undefined): string {
  const detail = said === undefined ? "" : `: ${said}`;
  if (status === 401 || status === 403) return `the server refuses the token (${status})${detail}`;
  // A browser hides where to.
  if (status === 0 || (status >= 300 && status < 400)) {
    return 'the server redirects elsewhere: is the option "url" right?';
  }
  if (said !== undefined) return `the server refused${detail}`;
  return `the server's answer (status ${status}) is neither a result nor an error`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
