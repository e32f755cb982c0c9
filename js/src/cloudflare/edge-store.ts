import { TidegateError } from "../errors.js";
import { checkOptions, isPlainObject } from "../options.js";
import { type Fetch, fetchOf, tokenOf, urlOf } from "../remote/options.js";
import { patient } from "../remote/patient.js";
import { type Received, Requests } from "../remote/requests.js";
import { type Capabilities, DRIVER, type Driver, type Store } from "../store.js";
import { Batches } from "../wire/batches.js";
import { exactFleet } from "../wire/capabilities.js";
import { WireDriver } from "../wire/driver.js";
import { linesOf, textsOf } from "../wire/lines.js";
import type { Asked } from "../wire/operation.js";

export interface EdgeStoreOptions {
  /** Where the Worker is: an "https://" URL; "http://" only to this machine. */
  url: string;
  /** One of its tokens. With one that is bound to a prefix, users' prefixes have to be that, or begin with it and "/". */
  token: string;
  /** Sends the requests. Default: the platform's. */
  fetch?: Fetch;
}

/** What the Worker takes at once; one operation alone may be twice as long. */
const MOST = { operations: 256, length: 255 * 1024 };

/**
 * The deployed Worker as the shared store of processes anywhere: exact, on its objects' clocks. What is asked for in
 * one tick travels in one request, up to 256 operations; one that nobody waits for any more is aborted, and none is
 * sent twice.
 *
 * @example
 * const store = new EdgeStore({ url: "https://tidegate.example.workers.dev", token: "one of its tokens" });
 * const limiter = new Limiter({ limit: { limit: 100, window: "1m" }, store, onStoreError: "local" });
 */
export class EdgeStore implements Store {
  readonly capabilities: Capabilities = exactFleet("store");
  readonly [DRIVER]: Driver;

  constructor(options: EdgeStoreOptions) {
    checkOptions(options, ["url", "token", "fetch"]);
    const token = tokenOf(options.token);
    const url = `${urlOf(options.url, token)}/v1/steps`;
    const headers = { authorization: `Bearer ${token}`, "content-type": "text/plain" };
    const [fetch, requests] = [fetchOf(options.fetch), new Requests("the Worker")];
    const send = async (batch: readonly Asked[]) => {
      const received = await requests.post(fetch, url, headers, linesOf("1;", batch));
      if (received.status === 200) return textsOf(received.text);
      throw new TidegateError("store", refusal(received));
    };
    const batches = new Batches(send, MOST, {
      group: () => 0,
      isOne: () => false,
      lingers: false,
    });
    this[DRIVER] = patient(new WireDriver(batches, undefined), requests);
  }

  /** Holds nothing. */
  async close(): Promise<void> {}
}

/** The Worker's own words, where they are its own. */
function refusal({ status, text }: Received): string {
  const error = errorIn(text);
  if (error !== undefined) return `the Worker refused (${status}): ${error.code}: ${error.message}`;
  return `what answers is not the Worker (status ${status}): is the option "url" right?`;
}

function errorIn(text: string): { code: unknown; message: unknown } | undefined {
  try {
    const { error } = JSON.parse(text);
    return isPlainObject(error) ? { code: error.code, message: error.message } : undefined;
  } catch {
    return undefined;
  }
}
