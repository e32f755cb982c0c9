// The module's bytes as text: works wherever JavaScript does, through any bundler, and under require(),
// which a top-level await would rule out.

import { base64 } from "./gen/bytes.js";
import { initLazily } from "./gen/tidegate.js";

export const memory: { readonly buffer: ArrayBuffer } = initLazily(
  () => new WebAssembly.Module(bytesOf(base64)),
);
/** Whether what one request starts, timers above all, ends with it. */
export const isolatesRequests: boolean = false;
export * from "./gen/tidegate.js";

/** What some hosts have, and some do not. */
interface Decoders {
  Uint8Array: { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  Buffer?: { from(text: string, encoding: "base64"): Uint8Array<ArrayBuffer> };
}

/** A callback for each byte would take fifty times as long as the host's own decoder. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const { Uint8Array: Bytes, Buffer } = globalThis as unknown as Decoders;
  if (Bytes.fromBase64) return Bytes.fromBase64(text);
  if (Buffer) return Buffer.from(text, "base64");
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}
