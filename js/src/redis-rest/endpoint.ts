import { show, TidegateError } from "../errors.js";
import type { Answer } from "./answer.js";
import type { Fetch } from "./options.js";

const SYNC_TOKEN = "upstash-sync-token";

/** A server that takes commands as JSON. Each request is sent once: one whose answer was lost may have been served. */
export class Endpoint {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: Fetch;
  #patienceMs = 0;

  constructor(url: string, token: string, send: Fetch) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    this.#fetch = send;
  }

  /** Requests are given up after the longest time for which somebody waits. */
  waits(ms: number): void {
    this.#patienceMs = Math.max(this.#patienceMs, ms);
  }

  async post(path: "" | "/pipeline", body: string): Promise<Answer> {
    const signal = AbortSignal.timeout(this.#patienceMs);
    try {
      return await this.#exchange(path, body, signal);
    } catch (thrown) {
      const [code, what] = signal.aborted
        ? (["timeout", `the server did not answer within ${this.#patienceMs} ms`] as const)
        : ([
            "store",
            `the server was not reached, or its answer was lost: ${why(thrown)}`,
          ] as const);
      throw new TidegateError(code, what, { cause: thrown });
    }
  }

  async #exchange(path: string, body: string, signal: AbortSignal): Promise<Answer> {
    const send = this.#fetch;
    const response = await send(this.#url + path, {
      method: "POST",
      headers: { ...this.#headers },
      body,
      signal,
      // Followed, it would be another request, to another server.
      redirect: "manual",
      ...UNCACHED,
    });
    const text = await response.text();
    // What the server tells of its own state: sent back, its next answer is no older.
    const state = response.headers.get(SYNC_TOKEN);
    if (state) this.#headers[SYNC_TOKEN] = state;
    return { status: response.status, body: parsed(text) };
  }
}

/** Frameworks that keep answers must not keep these; Workers with older compatibility dates refuse the option. */
const UNCACHED: RequestInit =
  typeof Request === "function" && "cache" in Request.prototype ? { cache: "no-store" } : {};

/** Platforms say "fetch failed", and the reason as its cause. */
function why(thrown: unknown): string {
  const { cause } = Object(thrown);
  return show(cause instanceof Error && cause.message !== "" ? cause : thrown);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
