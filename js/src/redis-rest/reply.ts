/**
 * How the script's reply to a batch begins, whose first text is numbers; the base64 of those begins with a letter.
 * "OK" is the one text that is never encoded, and none of the script's.
 */
const PLAIN = /^(?:[\d,;!]|OK$)/;

/**
 * The script's reply to a batch, in plain text. We do not ask for base64, since all of ours is ASCII, but a
 * host's own `fetch` may, or a server not wait to be asked.
 */
export function plainReply(reply: unknown): unknown {
  const parts = Array.isArray(reply) ? reply : [reply];
  if (typeof parts[0] !== "string" || PLAIN.test(parts[0])) return reply;
  const plain = parts.map((part) => (typeof part === "string" ? atob(part) : part));
  return Array.isArray(reply) ? plain : plain[0];
}
