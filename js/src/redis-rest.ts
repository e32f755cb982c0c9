import { checkOptions } from "./options.js";
import { falling, type RunScript } from "./redis/client.js";
import {
  SCRIPT_STORE_OPTIONS,
  type ScriptStoreOptions,
  scriptStore,
} from "./redis/script-store.js";
import { Commands } from "./redis-rest/commands.js";
import { Endpoint } from "./redis-rest/endpoint.js";
import { plainReply } from "./redis-rest/reply.js";
import { type Fetch, fetchOf, tokenOf, urlOf } from "./remote/options.js";
import { patient } from "./remote/patient.js";
import { Requests } from "./remote/requests.js";
import { type Capabilities, DRIVER, type Driver, type Store } from "./store.js";
import { WireDriver } from "./wire/driver.js";

export interface RedisRestStoreOptions extends ScriptStoreOptions {
  /** An "https://" URL; "http://" only to this machine. */
  url: string;
  /** May write, so it has no place in a browser's page. */
  token: string;
  /** Sends the requests. Default: the platform's. */
  fetch?: Fetch;
}

/**
 * Redis over fetch, by Upstash's REST protocol: exact over the fleet, on the server's clock, wherever there is
 * `fetch`. What is asked for in one tick travels in one request; a request that nobody waits for any more is
 * aborted, and none is sent twice.
 *
 * @example
 * const store = new RedisRestStore({ url: "https://example.upstash.io", token: "the token that may write" });
 * const limiter = new Limiter({ limit: { limit: 100, window: "1m" }, store, onStoreError: "allow" });
 */
export class RedisRestStore implements Store {
  readonly capabilities: Capabilities;
  readonly [DRIVER]: Driver;

  constructor(options: RedisRestStoreOptions) {
    checkOptions(options, ["url", "token", "fetch", ...SCRIPT_STORE_OPTIONS]);
    const token = tokenOf(options.token);
    const url = urlOf(options.url, token);
    const requests = new Requests("the server");
    const endpoint = new Endpoint(url, token, fetchOf(options.fetch), requests);
    const made = scriptStore(runOn(endpoint), options, {
      group: () => 0,
      isOne: () => true,
      lingers: false,
    });
    this.capabilities = made.capabilities;
    this[DRIVER] = patient(new WireDriver(made.batches, made.prefix), requests);
  }

  /** Holds nothing. */
  async close(): Promise<void> {}
}

/** Runs scripts where commands are posted. */
function runOn(endpoint: Endpoint): RunScript {
  const commands = new Commands(endpoint);
  const send = (command: string, script: string, keys: string[], args: string[]) =>
    commands.run([command, script, String(keys.length), ...keys, ...args]);
  const run = falling({
    bySha: (sha, keys, args) => send("EVALSHA", sha, keys, args),
    byText: (text, keys, args) => send("EVAL", text, keys, args),
  });
  return async (script, keys, args) => plainReply(await run(script, keys, args));
}
