import type { Fetch } from "../remote/options.js";
import type { Requests } from "../remote/requests.js";
import type { Answer } from "./answer.js";

const SYNC_TOKEN = "upstash-sync-token";

/** A server that takes commands as JSON. */
export class Endpoint {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: Fetch;
  readonly #requests: Requests;

  constructor(url: string, token: string, send: Fetch, requests: Requests) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    this.#fetch = send;
    this.#requests = requests;
  }

  async post(path: "" | "/pipeline", body: string): Promise<Answer> {
    const url = this.#url + path;
    const { status, text, headers } = await this.#requests.post(
      this.#fetch,
      url,
      this.#headers,
      body,
    );
    // What the server tells of its own state: sent back, its next answer is no older.
    const state = headers.get(SYNC_TOKEN);
    if (state) this.#headers[SYNC_TOKEN] = state;
    return { status, body: parsed(text) };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
