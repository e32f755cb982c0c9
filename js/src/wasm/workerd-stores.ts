// As workerd.ts. Nothing is done here, so that a bundler leaves the module out where nobody asks for it.

import module from "./gen/stores.wasm";

/** The module that stores with a conditional write, shards and tiers need. */
export function storesModule(): WebAssembly.Module {
  return module;
}
