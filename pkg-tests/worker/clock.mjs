// Imported before the Worker by tests that say what time it is. No Worker that is deployed has this in it.

const real = Date.now.bind(Date);
let at;

Date.now = () => at ?? real();

/** From now on it is that time; undefined: the real one. */
export function setClock(ms) {
  at = ms;
}
