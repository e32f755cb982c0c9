// The module's bytes as text: works wherever JavaScript does, through any bundler, and under require(),
// which a top-level await would rule out.

import type { Core } from "./exports.js";
import { base64 } from "./gen/core.js";
import { moduleFrom } from "./module-from.js";

/** What the module exports. Compiling takes most of the time of an import, so the first use of the module does it. */
export let core: Core = new Proxy({} as Core, {
  get: (_, name) => {
    core = new WebAssembly.Instance(moduleFrom(base64)).exports as unknown as Core;
    return core[name as keyof Core];
  },
});
/** Whether what one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = false;
