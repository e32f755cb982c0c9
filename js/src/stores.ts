// The core's second module, which only stores with a conditional write, shards and tiers need: what it is called by is
// in wasm/gen/glue.js, and may be called once stores() was.

import { storesModule } from "#wasm/stores";
import { initSync } from "./wasm/gen/glue.js";

let memory: { readonly buffer: ArrayBuffer } | undefined;

/** Makes the module when it is first asked for; answers its memory. */
export function stores(): { readonly buffer: ArrayBuffer } {
  memory ??= initSync({ module: storesModule() }).memory;
  return memory;
}
