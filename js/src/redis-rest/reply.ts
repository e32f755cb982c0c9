/** How the script's reply to a batch begins, whose first text is numbers; the base64 of those begins with a letter. */
const PLAIN = /^[\d,;!]/;

/**
 * The script's reply to a batch, in plain text. We do not ask for base64, since all of ours is ASCII, but a
 * host's own `fetch` may, or a server not wait to be asked. (The one text that is never encoded, "OK", is
 * none of the script's.)
 */
export function plainReply(reply: unknown): unknown {
  if (!Array.isArray(reply) || typeof reply[0] !== "string" || PLAIN.test(reply[0])) return reply;
  return reply.map((part) => (typeof part === "string" ? atob(part) : part));
}
