/** An operation on an id, in the wire's words. Every store takes them as they are. */
export type MessageCall = string;

export const MessageCall = {
  /** True for exactly one caller. */
  first: (ttlMs: number): MessageCall => `F;${ttlMs}`,
  /** The id is done, whatever was known of it. */
  put: (ttlMs: number): MessageCall => `S;${ttlMs}`,
  /** What a claim would find. */
  look: (): MessageCall => "L;",
  /** Takes the id. */
  claim: (token: string, leaseMs: number, payload = ""): MessageCall =>
    `K;${token};${leaseMs};${payload}`,
  /** Makes a held lease last from now. */
  renew: (token: string, leaseMs: number, payload = ""): MessageCall =>
    `W;${token};${leaseMs};${payload}`,
  /** The work is done. */
  commit: (token: string, ttlMs: number, result = "", payload = ""): MessageCall =>
    `D;${token};${ttlMs};${payload};${result}`,
  /** The work failed. */
  release: (token: string): MessageCall => `E;${token}`,
  /** Forgets the id. */
  forget: (): MessageCall => "G;",
} as const;
