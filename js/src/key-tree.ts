import { KeyIndex } from "./key-index.js";

/**
 * So many of a key's first colons part it. Keys that have more are together under the last of these, so
 * that nobody's key, however many colons are in it, takes more than this many places.
 */
const MAX_LEVELS = 8;

/** A key, or what several keys begin with: the text before one of their colons. */
class Place {
  slot: number | undefined;
  firstChild: Place | undefined;
  next: Place | undefined;
  previous: Place | undefined;

  constructor(
    readonly path: string,
    readonly parent: Place | undefined,
  ) {
    if (parent === undefined) return;
    this.next = parent.firstChild;
    if (this.next !== undefined) this.next.previous = this;
    parent.firstChild = this;
  }

  /** Takes itself out from under its parent. */
  leave(): void {
    if (this.next !== undefined) this.next.previous = this.previous;
    if (this.previous !== undefined) this.previous.next = this.next;
    else if (this.parent !== undefined) this.parent.firstChild = this.next;
  }
}

/**
 * Keys to slots, as a KeyIndex, with the keys linked along their colons: those below a key are found
 * without a look at any other.
 */
export class KeyTree {
  readonly #places: KeyIndex<Place>;

  constructor(maxKeys: number) {
    this.#places = new KeyIndex(maxKeys);
  }

  get(key: string): number | undefined {
    return this.#places.get(key)?.slot;
  }

  /** Adds a key that is not there. */
  add(key: string, slot: number): void {
    let parent: Place | undefined;
    for (const end of colons(key)) parent = this.#place(key.slice(0, end), parent);
    this.#place(key, parent).slot = slot;
  }

  delete(key: string): void {
    let place = this.#places.get(key);
    if (place !== undefined) place.slot = undefined;
    while (place !== undefined && place.slot === undefined && place.firstChild === undefined) {
      this.#places.delete(place.path);
      place.leave();
      place = place.parent;
    }
  }

  /** The slots of the keys that begin with this one and a colon. */
  below(key: string): number[] {
    const beginning = `${key}:`;
    const end = colons(beginning).at(-1) as number;
    const top = this.#places.get(beginning.slice(0, end));
    const slots: number[] = [];
    for (let place = top?.firstChild; place !== undefined; place = following(place, top)) {
      if (place.slot !== undefined && place.path.startsWith(beginning)) slots.push(place.slot);
    }
    return slots;
  }

  #place(path: string, parent: Place | undefined): Place {
    let place = this.#places.get(path);
    if (place === undefined) {
      place = new Place(path, parent);
      this.#places.add(path, place);
    }
    return place;
  }
}

/** Where a key is parted. */
function colons(key: string): number[] {
  const ends: number[] = [];
  for (
    let at = key.indexOf(":");
    at >= 0 && ends.length < MAX_LEVELS;
    at = key.indexOf(":", at + 1)
  ) {
    ends.push(at);
  }
  return ends;
}

/** The next place below `top`, children before siblings. */
function following(place: Place, top: Place | undefined): Place | undefined {
  if (place.firstChild !== undefined) return place.firstChild;
  let at: Place | undefined = place;
  while (at !== undefined && at !== top && at.next === undefined) at = at.parent;
  return at === top ? undefined : at?.next;
}
