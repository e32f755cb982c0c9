// workerd ends what a request started when the request is over, unless it is told to wait.

import * as workers from "cloudflare:workers";

/** Keeps the request running until the promise has settled, though its answer is sent. */
export const waitUntil: ((promise: Promise<unknown>) => void) | undefined = workers.waitUntil;
