/** CRC-16/XMODEM, by which a cluster spreads its keys. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a key. Ours are ASCII and hold no braces, so the whole key counts. */
function slotOf(key: string): number {
  let crc = 0;
  for (let at = 0; at < key.length; at += 1) {
    crc = ((crc << 8) & 0xffff) ^ (TABLE[((crc >> 8) ^ key.charCodeAt(at)) & 0xff] as number);
  }
  return crc & 0x3fff;
}

/** The slots of keys behind a prefix, whose hash tag, if it has one, is all that counts. */
export function slotsBehind(prefix: string): (key: string) => number {
  // Slots are of bytes.
  const bytes = String.fromCharCode(...new TextEncoder().encode(prefix));
  const tag = /^[^{]*\{([^}]+)\}/.exec(bytes)?.[1];
  if (tag !== undefined) {
    const slot = slotOf(tag);
    return () => slot;
  }
  return prefix === "" ? slotOf : (key) => slotOf(bytes + key);
}
