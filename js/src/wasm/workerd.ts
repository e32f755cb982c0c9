// workerd compiles no bytes at run time; it imports the module instead.

import { initSync } from "./gen/tidegate.js";
import module from "./gen/tidegate_bg.wasm";

export const memory: { readonly buffer: ArrayBuffer } = initSync({ module }).memory;
export * from "./gen/tidegate.js";
