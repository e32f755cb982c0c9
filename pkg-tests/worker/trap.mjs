// Imported before the Worker by tests that have it trap. No Worker that is deployed has this in it.

const now = Date.now.bind(Date);
const { Instance } = WebAssembly;
let newest;
let left = -1;
let trapped = 0;

WebAssembly.Instance = new Proxy(Instance, {
  construct(target, args) {
    newest = Reflect.construct(target, args);
    return newest;
  },
});

// Asked for the time, this asks the module for memory that there cannot be, which is an "unreachable" inside of it.
Date.now = () => {
  if (left >= 0 && left-- === 0) {
    trapped += 1;
    newest.exports.__wbindgen_malloc(2 ** 31 - 8, 2 ** 31);
  }
  return now();
};

/** The reading of the clock after so many others traps; -1: none does. Answers how many have. */
export function armTrap(after) {
  left = after;
  return { trapped };
}
