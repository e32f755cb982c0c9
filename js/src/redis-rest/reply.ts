/** Words with which the script's replies begin, in small letters; their base64 never is. */
const WORD = /^[a-z-]+$/;

/**
 * The script's reply to a batch, in plain text. We do not ask for base64, since all of ours is ASCII, but a
 * host's own `fetch` may, or a server not wait to be asked. (The one text that is never encoded, "OK", is
 * none of the script's.)
 */
export function plainReply(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(plainRow) : reply;
}

function plainRow(row: unknown): unknown {
  if (!Array.isArray(row) || typeof row[0] !== "string" || WORD.test(row[0])) return row;
  return row.map((part) => (typeof part === "string" ? atob(part) : part));
}
