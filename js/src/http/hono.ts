import type { WebResponse } from "../platform.js";
import { isList } from "./fields.js";
import type { FrameworkLimitOptions } from "./options.js";
import type { Reader } from "./reader.js";
import { refusal } from "./refusal.js";
import { RequestLimit } from "./request-limit.js";

/** What is used of a context of Hono. */
interface Context {
  readonly req: { readonly raw: unknown; header(name: string): string | undefined };
  readonly env: any;
  header(name: string, value: string, options?: { append?: boolean }): void;
}

const reader: Reader<Context> = {
  header: ({ req }, name) => req.header(name),
  peer: ({ env, req }) =>
    // As Node's adapter, Deno and Bun each tell who is connected.
    env?.incoming?.socket?.remoteAddress ??
    env?.remoteAddr?.hostname ??
    (env?.server ?? env)?.requestIP?.(req.raw)?.address,
};

/**
 * A middleware for Hono, on whatever runs it. Where that tells no peers, as on Workers, say `trustProxy` or `key`.
 *
 * @example
 * app.use(honoLimit({ limit: { limit: 100, window: "1m" } }));
 */
export function honoLimit(
  options: FrameworkLimitOptions<any, WebResponse>,
  // biome-ignore lint/suspicious/noConfusingVoidType: as Hono types a middleware
): (c: any, next: () => Promise<void>) => Promise<WebResponse | void> {
  const limit = new RequestLimit<Context>(options, reader);
  const { refuse } = options;
  return async (context: Context, next) => {
    const verdict = await limit.judge(context);
    const { decision, headers } = verdict;
    if (!decision.allowed) return refusal(verdict, refuse && (() => refuse(decision, context)));
    await next();
    for (const [name, value] of Object.entries(headers)) {
      context.header(name, value, { append: isList(name) });
    }
  };
}
