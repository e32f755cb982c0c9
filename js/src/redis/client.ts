import { bad } from "../options.js";

/** A host that runs Redis Lua, in one method. `sha` is the script's SHA-1; the reply is the raw Redis reply. */
export interface ScriptAdapter {
  evalScript(script: string, sha: string, keys: string[], args: string[]): Promise<unknown>;
}

/** Runs one of our scripts on the node that holds the keys. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

/** A script's text and its SHA-1. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** One way to send a script: by its hash, or with its text. */
interface Sender {
  bySha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  byText(text: string, keys: string[], args: string[]): Promise<unknown>;
}

/** The methods by which each client is recognised. Nothing is patched onto it, and no class is named. */
interface Shapes {
  evalScript?: ScriptAdapter["evalScript"];
  customCommand?(args: string[]): Promise<unknown>;
  evalSha?(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  evalsha?(sha: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  eval?(text: string, ...rest: unknown[]): Promise<unknown>;
  sendCommand?(command: { pipelineIndex?: number }): Promise<unknown>;
  status?: string;
  options?: { keyPrefix?: unknown; redisOptions?: { keyPrefix?: unknown } };
}

/**
 * How to run scripts on a client: a ScriptAdapter, GLIDE, node-redis, ioredis or iovalkey.
 *
 * @throws TidegateError "bad_policy" for a client of no known shape.
 */
export function scriptRunner(client: unknown): RunScript {
  const shape = client as Shapes;
  const has = (method: keyof Shapes) => typeof shape?.[method] === "function";
  if (has("evalScript")) {
    return (script, keys, args) =>
      (shape as ScriptAdapter).evalScript(script.text, script.sha, keys, args);
  }
  if (has("customCommand")) return falling(glide(shape as Required<Shapes>));
  if (has("evalSha") && has("eval")) return falling(nodeRedis(shape as Required<Shapes>));
  // Clients over HTTP have evalsha and eval too, and want other arguments.
  if (has("evalsha") && has("sendCommand") && typeof shape.status === "string") {
    return falling(sendingOnce(shape as Required<Shapes>));
  }
  bad(
    "bad_policy",
    "client",
    client,
    "an ioredis, iovalkey, node-redis or GLIDE client (evalsha, evalSha or customCommand), or an object with evalScript(script, sha, keys, args)",
  );
}

/**
 * By hash, and with the text where the node does not know the hash. Nothing else is sent twice: a script
 * whose reply was lost may have run.
 */
export function falling(sender: Sender): RunScript {
  return async (script, keys, args) => {
    try {
      return await sender.bySha(script.sha, keys, args);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return sender.byText(script.text, keys, args);
    }
  };
}

/** By the server's own words, or GLIDE's, and not by one that merely occurs in a text. */
function isUnknownScript(error: unknown): boolean {
  const said = [error, (error as Error | undefined)?.cause].filter((each) => each instanceof Error);
  return said.some(({ message }) =>
    /\b(?:NOSCRIPT|NoScriptError:) No matching script\b/.test(message),
  );
}

/** What the client puts before every key. */
export function keyPrefixOf(client: unknown): string {
  const options = (client as Shapes).options;
  const prefix = options?.keyPrefix ?? options?.redisOptions?.keyPrefix;
  return typeof prefix === "string" ? prefix : "";
}

function ioredis(client: Required<Shapes>): Sender {
  return {
    bySha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
    byText: (text, keys, args) => client.eval(text, keys.length, ...keys, ...args),
  };
}

/** No place in any pipeline. */
const NOWHERE = -1;

/**
 * A view of an ioredis or iovalkey client through which nothing is sent twice. Once connected again, these
 * clients repeat what was under way when the connection broke, although it may have run, except for what
 * belongs to a pipeline that is no longer whole: that fails, as all that we send is to.
 */
function sendingOnce(client: Required<Shapes>): Sender {
  const view = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value(command: { pipelineIndex?: number }) {
        command.pipelineIndex = NOWHERE;
        return client.sendCommand(command);
      },
    },
  });
  return ioredis(view);
}

function nodeRedis(client: Required<Shapes>): Sender {
  return {
    bySha: (sha, keys, args) => client.evalSha(sha, { keys, arguments: args }),
    byText: (text, keys, args) => client.eval(text, { keys, arguments: args }),
  };
}

function glide(client: Required<Shapes>): Sender {
  const send = (command: string, script: string, keys: string[], args: string[]) =>
    client.customCommand([command, script, String(keys.length), ...keys, ...args]);
  return {
    bySha: (sha, keys, args) => send("EVALSHA", sha, keys, args),
    byText: (text, keys, args) => send("EVAL", text, keys, args),
  };
}
