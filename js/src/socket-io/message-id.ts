/** Where a message's id is found unless the rule says otherwise: payload._meta.mid, else payload.mid. */
export function payloadId([payload]: unknown[]): unknown {
  return own(own(payload, "_meta"), "mid") ?? own(payload, "mid");
}

/** An id as text; undefined for what is none, so that the message is not deduplicated. */
export function idText(id: unknown): string | undefined {
  if (typeof id === "string" && id !== "") return id;
  return Number.isFinite(id) ? String(id) : undefined;
}

/** Own members only: what every object inherits is no client's id. */
function own(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
