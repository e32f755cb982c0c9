// workerd compiles no bytes at run time; it imports the module instead.

import { initSync } from "./gen/tidegate.js";
import module from "./gen/tidegate_bg.wasm";

export const memory: WebAssembly.Memory = initSync({ module }).memory;
export * from "./gen/tidegate.js";
