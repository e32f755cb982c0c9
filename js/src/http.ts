/** Limits for HTTP servers: fetch-style, Express and Connect, Fastify, Hono. */

export { expressLimit } from "./http/express.js";
export { fastifyLimit } from "./http/fastify.js";
export { limitFetch } from "./http/fetch.js";
export { honoLimit } from "./http/hono.js";
export type { FrameworkLimitOptions, HttpLimitOptions } from "./http/options.js";
