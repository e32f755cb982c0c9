import type { MessageReply } from "./store.js";
import type { Exchange } from "./wasm/exchange.js";

/** In the order of the core's numbers. */
const STATUSES = ["yes", "no", "absent", "fresh", "mismatch", "in-progress", "duplicate"] as const;

/** The reply that the core told in numbers, the status first; nothing where there is none. */
export function replyOf(status: number, exchange: Exchange): MessageReply | undefined {
  const name = STATUSES[status];
  if (name === undefined) return undefined;
  const [retryAfterMs, length] = exchange.numbers as unknown as [number, number];
  const result = length < 0 ? undefined : exchange.answer(length);
  return { status: name, retryAfterMs, result };
}
