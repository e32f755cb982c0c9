// workerd compiles no bytes at run time; it imports the module instead.

import { initSync } from "./gen/tidegate.js";
import module from "./gen/tidegate_bg.wasm";

/** What the module exports, beside the classes: its memory, and functions of numbers alone. */
export const core = initSync({ module });
export const memory: { readonly buffer: ArrayBuffer } = core.memory;
/** What one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = true;
export * from "./gen/tidegate.js";
