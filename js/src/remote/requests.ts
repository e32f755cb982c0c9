import { show, TidegateError } from "../errors.js";
import type { Fetch } from "./options.js";

/** What came back. */
export interface Received {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** Sends requests, each of them once: one whose answer was lost may have been served. */
export class Requests {
  readonly #whom: string;
  #patienceMs = 0;

  constructor(whom: "the server" | "the Worker" | "the object") {
    this.#whom = whom;
  }

  /** Requests are given up after the longest time for which somebody waits. */
  waits(ms: number): void {
    this.#patienceMs = Math.max(this.#patienceMs, ms);
  }

  async post(
    send: Fetch,
    url: string,
    headers: Record<string, string>,
    body: string,
  ): Promise<Received> {
    const signal = AbortSignal.timeout(this.#patienceMs);
    try {
      const response = await send(url, {
        method: "POST",
        headers: { ...headers },
        body,
        signal,
        // Followed, it would be another request, to another server.
        redirect: "manual",
        ...UNCACHED,
      });
      return {
        status: response.status,
        text: await response.text(),
        headers: response.headers,
      };
    } catch (thrown) {
      throw signal.aborted ? this.#late(thrown) : this.#lost(thrown);
    }
  }

  #late(cause: unknown): TidegateError {
    const what = `${this.#whom} did not answer within ${this.#patienceMs} ms`;
    return new TidegateError("timeout", what, { cause });
  }

  #lost(cause: unknown): TidegateError {
    const what = `${this.#whom} was not reached, or its answer was lost: ${why(cause)}`;
    return new TidegateError("store", what, { cause });
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
