// Redis over HTTP, as Upstash documents it: a real server answers, this only translates. What the official client
// says of it is in proxy.test.mjs.

import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { Redis } from "ioredis";

export const TOKEN = "a-token-that-may-write";

export class RestProxy {
  static async start(redisPort) {
    const proxy = new RestProxy(redisPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    proxy.url = `http://127.0.0.1:${proxy.#server.address().port}`;
    return proxy;
  }

  /** Every request that arrived, with what was in it. */
  requests = [];
  /** What a test makes of a request in place of an answer: gets it, what serves it, and the response. */
  fault = undefined;
  #redis;
  #server = createServer((request, response) => this.#handle(request, response));
  #served = 0;

  constructor(redisPort) {
    this.#redis = new Redis(redisPort);
  }

  async stop() {
    this.#redis.disconnect();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #handle(request, response) {
    response.on("error", () => {});
    if (request.method === "OPTIONS") return respond(response, 204);
    const body = await buffer(request).catch(() => undefined);
    if (body === undefined) return;
    const { method, headers } = request;
    const url = new URL(request.url, this.url);
    const received = { method, url, headers, body };
    this.requests.push(received);
    const serve = () => this.#serve(received);
    if (this.fault !== undefined) return this.fault(received, serve, response);
    const [status, answer] = await serve();
    respond(response, status, answer, this.#served);
  }

  async #serve({ method, url, headers, body }) {
    if (!["HEAD", "GET", "POST", "PUT"].includes(method))
      return [405, { error: "ERR method not allowed" }];
    const token = url.searchParams.get("_token") ?? headers.authorization?.replace(/^Bearer /, "");
    if (token !== TOKEN) return [401, { error: "WRONGPASS invalid or missing auth token" }];
    const say = headers["upstash-encoding"] === "base64" ? base64 : plain;
    this.#served += 1;
    try {
      return await this.#answer(url, body, say);
    } catch (error) {
      return [
        400,
        { error: error instanceof SyntaxError ? "ERR failed to parse command" : error.message },
      ];
    }
  }

  async #answer(url, body, say) {
    const item = ([error, result]) => (error ? { error: error.message } : { result: say(result) });
    if (url.pathname === "/pipeline" || url.pathname === "/multi-exec") {
      const many = url.pathname === "/pipeline" ? this.#redis.pipeline() : this.#redis.multi();
      for (const command of JSON.parse(body)) many.callBuffer(...command.map(String));
      return [200, (await many.exec()).map(item)];
    }
    const command = url.pathname === "/" ? JSON.parse(body).map(String) : commandIn(url, body);
    return [200, { result: say(await this.#redis.callBuffer(...command)) }];
  }
}

/** The other form of a command: its words in the path, a value as the body, options behind it in the query. */
function commandIn({ pathname, searchParams }, body) {
  const words = pathname.slice(1).split("/").map(decodeURIComponent);
  const options = [...searchParams].filter(([name]) => name !== "_token").flat();
  return [...words, ...(body.length > 0 ? [body] : []), ...options];
}

/** A reply as JSON has it. Bytes that are not text are replaced. */
function plain(reply) {
  if (Array.isArray(reply)) return reply.map(plain);
  if (reply instanceof Error) return { error: reply.message };
  return reply instanceof Uint8Array ? reply.toString("utf8") : reply;
}

/** The same with every text in base64, except "OK". */
function base64(reply) {
  if (Array.isArray(reply)) return reply.map(base64);
  if (!(reply instanceof Uint8Array) || reply.equals(Buffer.from("OK"))) return plain(reply);
  return reply.toString("base64");
}

/** Waits until whoever asked has gone. */
export const gone = (response) => once(response, "close", { signal: AbortSignal.timeout(5_000) });

/** Answers with JSON, or with text where a test wants something else, to pages of any origin. */
export function respond(response, status, answer = "", served = 0) {
  const text = typeof answer === "string" ? answer : JSON.stringify(answer);
  response.writeHead(status, {
    "content-type": typeof answer === "string" ? "text/html" : "application/json",
    "upstash-sync-token": `state-${served}`,
    "access-control-allow-origin": "*",
    "access-control-allow-headers":
      "authorization, content-type, upstash-encoding, upstash-sync-token",
    "access-control-expose-headers": "upstash-sync-token",
  });
  response.end(text);
}
