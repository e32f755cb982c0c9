import { show, TidegateError } from "../errors.js";

/** What some hosts have, and some do not. */
interface Decoders {
  Uint8Array: { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  Buffer?: { from(text: string, encoding: "base64"): Uint8Array<ArrayBuffer> };
}

/** The module whose bytes the text stands for. */
export function moduleFrom(base64: string): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytesOf(base64));
  } catch (cause) {
    const text = `WebAssembly cannot be compiled here (a Content-Security-Policy has to name 'wasm-unsafe-eval'): ${show(cause)}`;
    throw new TidegateError("unsupported", text, { cause });
  }
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
