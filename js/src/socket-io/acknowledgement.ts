import { asciiJson } from "../json.js";

/** An acknowledgement as the store keeps it. JSON holds no bytes: they stand beside it. */
interface Kept {
  readonly args: unknown[];
  readonly bytes?: Bytes[];
}

/** Bytes, and the way to them from the arguments. */
interface Bytes {
  readonly path: (string | number)[];
  readonly base64: string;
}

/** Looked up once: the runtime makes it when it is asked for. */
const { Blob } = globalThis;

/** The most that is kept of one acknowledgement. */
const MAX_BYTES = 64 * 1024;

/**
 * What is to be kept of an acknowledgement, as JSON; undefined when it is too large, or is read only later (a Blob).
 * Throws what Socket.IO would throw on arguments that it cannot send.
 */
export function kept(args: unknown[]): string | undefined {
  const whole = contains(args, isBinary) ? apart(args) : { args };
  if (whole === undefined) return undefined;
  const json = JSON.stringify(whole);
  // No character of UTF-16 takes more than three bytes.
  const fits = json.length * 3 <= MAX_BYTES || Buffer.byteLength(json) <= MAX_BYTES;
  return fits ? asciiJson(json) : undefined;
}

/** The arguments of a kept acknowledgement; undefined when there is none, or it is not ours. */
export function restored(value: unknown): unknown[] | undefined {
  const { args, bytes } = (value ?? {}) as Partial<Kept>;
  if (!Array.isArray(args)) return undefined;
  try {
    for (const { path, base64 } of bytes ?? []) put(args, path, Buffer.from(base64, "base64"));
    return args;
  } catch {
    return undefined;
  }
}

function isBytes(value: unknown): value is ArrayBuffer | ArrayBufferView {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

function isBlob(value: unknown): boolean {
  return value instanceof Blob;
}

function isBinary(value: unknown): boolean {
  return isBytes(value) || isBlob(value);
}

/** What JSON writes as its members: neither null nor what says itself how it is written. */
function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !("toJSON" in value);
}

function contains(value: unknown, wanted: (value: unknown) => boolean): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((member) => contains(member, wanted));
  if (wanted(value)) return true;
  if (!isPlain(value)) return false;
  for (const name in value) {
    const member = (value as any)[name];
    // Most members are no objects, and need no look at whose they are.
    if (typeof member === "object" && Object.hasOwn(value, name) && contains(member, wanted)) {
      return true;
    }
  }
  return false;
}

function apart(args: unknown[]): Kept | undefined {
  if (contains(args, isBlob)) return undefined;
  const bytes: Bytes[] = [];
  return { args: withoutBytes(args, [], bytes) as unknown[], bytes };
}

/** A copy in which null stands in place of bytes, which are added to `found`. */
function withoutBytes(value: unknown, path: (string | number)[], found: Bytes[]): unknown {
  if (isBytes(value)) {
    const view = ArrayBuffer.isView(value) ? value : new Uint8Array(value);
    const bytes = Buffer.from(view.buffer, view.byteOffset, view.byteLength);
    found.push({ path, base64: bytes.toString("base64") });
    return null;
  }
  if (!isPlain(value)) return value;
  if (Array.isArray(value)) {
    return value.map((member, at) => withoutBytes(member, [...path, at], found));
  }
  const members = Object.entries(value);
  return Object.fromEntries(
    members.map(([name, member]) => [name, withoutBytes(member, [...path, name], found)]),
  );
}

/** Puts a value where null stands for it. */
function put(args: unknown[], path: (string | number)[], value: unknown): void {
  let place: any = args;
  for (const step of path.slice(0, -1)) place = own(place, step);
  const last = path.at(-1) as string | number;
  if (own(place, last) === null) place[last] = value;
}

function own(place: any, step: string | number): any {
  if (Object.hasOwn(place, step)) return place[step];
  throw new TypeError("no such place");
}
