// workerd compiles no bytes at run time; it imports the module instead.

import type { Core } from "./exports.js";
import module from "./gen/core.wasm";

/** What the module exports. */
export const core = new WebAssembly.Instance(module).exports as unknown as Core;
/** What one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = true;
