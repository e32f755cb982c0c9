import { show, TidegateError } from "../errors.js";
import { bad } from "../options.js";

/** The platform's `fetch`, as the user's own libraries type it. */
export type Fetch = typeof globalThis extends { fetch: infer F }
  ? F
  : (url: string, request: object) => Promise<unknown>;

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;

/** Printable ASCII without spaces: all that a header carries as it is. */
const TOKEN = /^[!-~]+$/;

/** The token as it is. Errors do not show it; one that is a URL was taken for the other option. */
export function tokenOf(value: unknown): string {
  if (typeof value === "string" && TOKEN.test(value) && !/^https?:/i.test(value)) return value;
  const why =
    typeof value !== "string" || value === ""
      ? `but is ${show(value)}`
      : "and its value, which is not shown, is not (a line break at its end, or the URL in its place?)";
  throw new TidegateError(
    "bad_policy",
    `option "token" must be printable ASCII without spaces, ${why}`,
  );
}

/** Where commands are posted, without a slash at the end. */
export function urlOf(value: unknown, token: string): string {
  const url = typeof value === "string" ? parsed(value) : undefined;
  if (url !== undefined && acceptable(url)) return url.href.replace(/\/+$/, "");
  // What a URL holds besides its host may be a secret.
  const shown = url === undefined ? value : `${url.protocol}//${url.host}`;
  bad(
    "bad_policy",
    'option "url"',
    typeof shown === "string" && shown.includes(token) ? "(the token is in it)" : shown,
    'an "https://" URL, or "http://" to this machine, without user name, password, query and fragment',
  );
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** A token that travels unencrypted, or in a log of URLs, is no secret for long. */
function acceptable({ protocol, hostname, username, password, search, hash }: URL): boolean {
  const safe = protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
  return safe && `${username}${password}${search}${hash}` === "";
}

/** How to send requests. A function that is given is called without a `this`. */
export function fetchOf(value: unknown): Fetch {
  if (value === undefined && typeof fetch === "function") {
    // Found again with each request, so that what is put in its place meanwhile is used.
    return (input, init) => fetch(input, init);
  }
  if (typeof value === "function") return value as Fetch;
  bad("bad_policy", 'option "fetch"', value, "a function that sends requests as fetch does");
}
