// workerd compiles no bytes at run time; it imports the module instead.

import { initSync } from "./gen/tidegate.js";
import module from "./gen/tidegate_bg.wasm";

export const memory: { readonly buffer: ArrayBuffer } = initSync({ module }).memory;
/** What one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = true;
export * from "./gen/tidegate.js";
