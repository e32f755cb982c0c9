import { isList } from "./fields.js";
import type { FrameworkLimitOptions } from "./options.js";
import { PROBLEM_TYPE, problem, STATUS } from "./problem.js";
import type { Reader } from "./reader.js";
import { RequestLimit } from "./request-limit.js";

/** What is used of a request of Express, of Connect, or of node:http itself. */
interface Incoming {
  readonly headers: Record<string, string | string[] | undefined>;
  readonly ip?: string;
  readonly socket: { readonly remoteAddress?: string };
}

interface Outgoing {
  statusCode: number;
  readonly headersSent: boolean;
  getHeader(name: string): unknown;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

const peer = ({ socket }: Incoming) => socket.remoteAddress;
const reader: Reader<Incoming> = {
  header: ({ headers }, name) => headers[name]?.toString(),
  peer,
  client: (request) => request.ip ?? peer(request),
};

/**
 * A middleware for Express and Connect. `refuse(decision, request, response)` writes to the response itself, whose
 * status and headers are set. Without `trustProxy` a client is who `request.ip` says.
 *
 * @example
 * app.use(expressLimit({ limit: { limit: 100, window: "1m" } }));
 */
export function expressLimit(
  options: FrameworkLimitOptions<any, unknown>,
): (req: any, res: any, next: (error?: unknown) => void) => void {
  const limit = new RequestLimit<Incoming>(options, reader);
  const { refuse = (decision, _, response) => end(response, problem(decision)) } = options;
  const admit = async (request: Incoming, response: Outgoing): Promise<boolean> => {
    const { decision, headers } = await limit.judge(request);
    // Somebody else may have answered meanwhile: a timeout, for one.
    if (response.headersSent) return decision.allowed;
    for (const [name, value] of Object.entries(headers)) add(response, name, value);
    if (decision.allowed) return true;
    response.statusCode = STATUS;
    await refuse(decision, request, response);
    return false;
  };
  return (request, response, next) => {
    // What the handlers behind next() throw is not caught here.
    admit(request, response).then((isAdmitted) => {
      if (isAdmitted) next();
    }, next);
  };
}

function add(response: Outgoing, name: string, value: string): void {
  const before = isList(name) ? response.getHeader(name) : undefined;
  response.setHeader(name, before === undefined ? value : `${before}, ${value}`);
}

function end(response: Outgoing, body: string): void {
  response.setHeader("content-type", PROBLEM_TYPE);
  response.end(body);
}
