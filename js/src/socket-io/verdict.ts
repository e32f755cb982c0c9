import type { HeldClaim } from "../held-claim.js";
import type { Messages } from "./messages.js";
import type { Refusal } from "./refusal.js";

/** What a client is told in the end. */
export type Ending =
  /** It was handled: with that acknowledgement, or undefined where it is not kept. */
  | { readonly act: "replay"; readonly args: unknown[] | undefined }
  /** Nothing came of it. */
  | { readonly act: "refuse"; readonly refusal: Refusal };

/** On to the handlers, with a claim to be committed or released. */
export interface Claimed {
  readonly act: "deliver";
  readonly claim: HeldClaim;
  readonly key: string;
  readonly messages: Messages;
}

/** What is to become of a packet. */
export type Verdict =
  | Ending
  /** On to the handlers. */
  | { readonly act: "pass" }
  | Claimed
  /** It is being handled: wait for what comes of it. */
  | {
      readonly act: "wait";
      readonly key: string;
      readonly messages: Messages;
      readonly retryAfterMs: number;
    };

export const PASS: Verdict = { act: "pass" };
