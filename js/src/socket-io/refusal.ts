import type { Decision } from "../decision.js";

/** Why a packet or a handshake was refused. */
export type RefusalCode =
  /** Over a limit. */
  | "RATE_LIMITED"
  /** The packet makes no sense to the rules: what it costs, or who sent it, cannot be told. */
  | "BAD_REQUEST"
  /** The store failed, and the gateway is told to refuse then. */
  | "STORE_UNAVAILABLE"
  /** The handler failed; the message has not been seen, and may be sent again. */
  | "HANDLER_FAILED"
  /** Too many packets of this socket wait already. */
  | "OVERLOADED";

/** What a client is told. */
export interface Refusal {
  readonly code: RefusalCode;
  /** When the same packet may be admitted. Infinity, which JSON writes as null, when it never is. */
  readonly retryAfterMs: number;
  /** Capacity of the limit that decided; 0 where none did. */
  readonly limit: number;
  readonly remaining: number;
}

/** The shape of acknowledgements: ours, those of Arkos, or the user's own. */
export type Acks =
  | "tidegate"
  | "arkos"
  | ((refusal: {
      code: string;
      retryAfterMs: number;
      limit: number;
      remaining: number;
    }) => unknown);

/** A refusal without a limit behind it. */
export function refusal(code: RefusalCode, retryAfterMs = 0): Refusal {
  return { code, retryAfterMs, limit: 0, remaining: 0 };
}

/** The refusal of a denied decision. */
export function refusalOf(decision: Decision): Refusal {
  const { reason, retryAfterMs, limit, remaining } = decision;
  if (reason === "store-error" || reason === "timeout") {
    return refusal("STORE_UNAVAILABLE", retryAfterMs);
  }
  return { code: "RATE_LIMITED", retryAfterMs, limit, remaining };
}

const ARKOS_TEXTS: Record<RefusalCode, string> = {
  RATE_LIMITED: "Too many requests",
  BAD_REQUEST: "Bad request",
  STORE_UNAVAILABLE: "Service unavailable",
  HANDLER_FAILED: "Internal server error",
  OVERLOADED: "Too many requests",
};

/** The acknowledgement that tells a refusal. */
export function acknowledgementOf(refused: Refusal, acks: Acks): unknown {
  if (typeof acks === "function") return acks(refused);
  if (acks === "tidegate") return { ok: false, error: refused };
  return { error: ARKOS_TEXTS[refused.code], retryAfter: refused.retryAfterMs };
}

/** The acknowledgement of a duplicate where the first one is not kept. */
export function alreadyDone(acks: Acks): unknown {
  return acks === "arkos" ? { success: true, duplicate: true } : { ok: true, duplicate: true };
}
