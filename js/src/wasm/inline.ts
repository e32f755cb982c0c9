// The module's bytes as text: works wherever JavaScript does, through any bundler, and under require(),
// which a top-level await would rule out.

import { base64 } from "./gen/bytes.js";
import { initSync } from "./gen/tidegate.js";

const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** What the module exports, beside the classes: its memory, and functions of numbers alone. */
export const core = initSync({ module: new WebAssembly.Module(bytes) });
export const memory: { readonly buffer: ArrayBuffer } = core.memory;
/** Whether what one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = false;
export * from "./gen/tidegate.js";
