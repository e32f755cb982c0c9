// As inline.ts, but nothing is compiled before it is asked for.

import { base64 } from "./gen/stores.js";
import { moduleFrom } from "./module-from.js";

/** The module that stores with a conditional write, shards and tiers need. */
export function storesModule(): WebAssembly.Module {
  return moduleFrom(base64);
}
