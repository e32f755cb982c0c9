import { MemoryStore } from "../memory-store.js";
import { bad, isPlainObject, prefixOf } from "../options.js";
import { isList } from "./fields.js";
import type { FrameworkLimitOptions } from "./options.js";
import { PROBLEM_TYPE, problem, STATUS } from "./problem.js";
import type { Reader } from "./reader.js";
import { RequestLimit } from "./request-limit.js";

type Options = FrameworkLimitOptions<any, unknown>;

/** What is used of a request of Fastify. */
interface Incoming {
  readonly headers: Record<string, string | string[] | undefined>;
  readonly ip: string;
  readonly socket: { readonly remoteAddress?: string };
  readonly routeOptions: Route;
}

interface Route {
  readonly method: string | string[];
  readonly url?: string;
  readonly config?: { readonly tidegate?: Partial<Options> | false };
}

interface Reply {
  readonly sent: boolean;
  code(status: number): Reply;
  type(contentType: string): Reply;
  getHeader(name: string): unknown;
  header(name: string, value: string): Reply;
  send(body: unknown): Reply;
}

const reader: Reader<Incoming> = {
  header: ({ headers }, name) => headers[name]?.toString(),
  peer: ({ socket }) => socket.remoteAddress,
  client: ({ ip }) => ip,
};

/** A limit, and how to answer who is over it. */
interface Gate {
  readonly limit: RequestLimit<Incoming>;
  readonly refuse: NonNullable<Options["refuse"]>;
}

/** The gates of an application: the one for all its routes, and those of routes with options of their own. */
class Gates {
  readonly #options: Options;
  readonly #shared: Gate;
  readonly #own = new Map<string, Gate>();

  constructor(options: Options) {
    // One store for all, so that limits of one name and prefix are one budget.
    const { store = new MemoryStore() } = options;
    this.#options = { ...options, store };
    this.#shared = gateFrom(this.#options);
  }

  /** The gate of a route; undefined where its options say that there is none. */
  of({ method, url, config }: Route): Gate | undefined {
    const given = config?.tidegate;
    if (given === undefined) return this.#shared;
    if (given === false) return undefined;
    if (!isPlainObject(given)) {
      bad("bad_policy", 'route option "config.tidegate"', given, "a plain object, or false");
    }
    // HEAD is what Fastify adds to a GET by itself: one budget for both.
    const route = `${String(method).replace("HEAD", "GET")} ${url}`;
    let gate = this.#own.get(route);
    if (gate === undefined) {
      const prefix = `${prefixOf(this.#options.prefix)}:${route}`;
      gate = gateFrom({ ...this.#options, prefix, ...given });
      this.#own.set(route, gate);
    }
    return gate;
  }
}

function gateFrom(options: Options): Gate {
  const limit = new RequestLimit<Incoming>(options, reader);
  return { limit, refuse: options.refuse ?? refuse };
}

function refuse(...[decision, , reply]: Parameters<Gate["refuse"]>): string {
  (reply as Reply).type(PROBLEM_TYPE);
  return problem(decision);
}

async function plugin(app: any, options: Options): Promise<void> {
  const gates = new Gates(options);
  // So that mistakes in a route's options are found where the route is declared.
  app.addHook("onRoute", (route: Route) => {
    gates.of(route);
  });
  app.addHook("onRequest", async (request: Incoming, reply: Reply) => {
    const gate = gates.of(request.routeOptions);
    if (gate === undefined) return;
    const { decision, headers } = await gate.limit.judge(request);
    if (reply.sent) return;
    for (const [name, value] of Object.entries(headers)) add(reply, name, value);
    if (decision.allowed) return;
    reply.code(STATUS);
    const body = await gate.refuse(decision, request, reply);
    return reply.sent ? reply : reply.send(body);
  });
}

function add(reply: Reply, name: string, value: string): void {
  const before = isList(name) ? reply.getHeader(name) : undefined;
  reply.header(name, before === undefined ? value : `${before}, ${value}`);
}

/**
 * A plugin for Fastify. A route's own options are in its `config.tidegate`, and are a budget of its own; `false`
 * takes the route out. What `refuse(decision, request, reply)` answers is sent. Without `trustProxy` a client is who
 * `request.ip` says.
 *
 * @example
 * await app.register(fastifyLimit, { limit: { limit: 100, window: "1m" } });
 * app.post("/login", { config: { tidegate: { limit: { limit: 5, window: "15m" } } } }, login);
 */
export const fastifyLimit: (app: any, options: Options) => Promise<void> = Object.assign(plugin, {
  // For the whole application, and not only for what is registered within the plugin.
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "tidegate",
});
