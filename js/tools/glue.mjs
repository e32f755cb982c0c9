// What wasm-bindgen writes around the module, mended for those who bundle it and for those who only import it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Compiling takes most of the time of an import, so the first use of the module does it. */
const lazily = `
export function initLazily(compile) {
    wasm = new Proxy({}, {
        get(_, name) {
            const module = compile();
            const instance = new WebAssembly.Instance(module, __wbg_get_imports());
            return __wbg_finalize_init(instance, module)[name];
        },
    });
    return { get buffer() { return wasm.memory.buffer; } };
}
`;

const itsType = `
/** Makes the module when something of it is first used; answers its memory. */
export function initLazily(compile: () => WebAssembly.Module): { readonly buffer: ArrayBuffer };
`;

/** Mends the glue and its types where they are. */
export function mendGlue(gen) {
  mend(join(gen, "tidegate.js"), (glue) => shakeable(glue) + lazily);
  mend(join(gen, "tidegate.d.ts"), (types) => types + itsType);
}

/** The types as users' compilers read them, which must not need the newest library or the DOM's for them. */
export function publicTypes(types) {
  return types
    .replace(/^ *\[Symbol\.dispose\].*\n/gm, "")
    .replace(/^export type InitInput[\s\S]*/m, "");
}

/** The glue, without what keeps bundlers from leaving out the classes that nobody uses: 5 KB less in a Worker. */
function shakeable(glue) {
  return glue
    .replace(/^if \(Symbol\.dispose\) .*\n/gm, "")
    .replaceAll(": new FinalizationRegistry(", ": /* @__PURE__ */ new FinalizationRegistry(");
}

function mend(file, mended) {
  writeFileSync(file, mended(readFileSync(file, "utf8")));
}
