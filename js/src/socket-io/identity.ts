import { show } from "../errors.js";
import { isAddress } from "../ip.js";
import type { ClientAddresses } from "./client-address.js";
import type { Socket } from "./server.js";

/** Who sends: whose budgets are charged, and whose message ids are remembered. */
export interface Identity {
  readonly budget: string;
  readonly sender: string;
}

const SEPARATING = /[%:]/g;

/** Joins parts to a key that can still be read; no two lists of parts ever meet. */
export function keyOf(...parts: string[]): string {
  return parts.map(keyPart).join(":");
}

/** One part of such a key. */
export function keyPart(part: string): string {
  return part.replace(SEPARATING, encodeURIComponent);
}

/** The sender in a message's key: what stands before its last three parts. */
export function senderOf(messageKey: string): string {
  return messageKey.split(":").slice(0, -3).join(":");
}

/** Finds out whose budget a socket's packets are charged to. */
export class Identities {
  readonly #identify: ((socket: Socket) => unknown) | undefined;
  readonly #addresses: ClientAddresses;

  constructor(identify: ((socket: Socket) => unknown) | undefined, addresses: ClientAddresses) {
    this.#identify = identify;
    this.#addresses = addresses;
  }

  /** What tells one identity of the socket from the next: read for every packet, so cheap. */
  name(socket: Socket): unknown {
    return this.#identify === undefined ? userOf(socket) : this.#identify(socket);
  }

  /** The identity of that name. Throws when it is no name. */
  of(socket: Socket, name: unknown): Identity {
    return this.#identify === undefined ? this.#known(socket, name) : told(socket, name);
  }

  #known(socket: Socket, user: unknown): Identity {
    if (user !== undefined) {
      const budget = keyOf("user", userText(user));
      return { budget, sender: budget };
    }
    const sender = keyOf("connection", socket.id);
    const address = this.#addresses.of(socket.conn);
    // Where no address is known, a budget that everyone shares would be everyone's to use up.
    return { budget: address === undefined ? sender : keyOf("address", address), sender };
  }
}

/** The user that the server's own code put on the socket. */
export function userOf({ data }: Socket): unknown {
  return data?.userId ?? data?.user?.id ?? undefined;
}

function userText(user: unknown): string {
  if (typeof user === "string" && user !== "") return user;
  if (typeof user === "bigint" || Number.isFinite(user)) return String(user);
  throw new TypeError(`a user's id must be a non-empty string or a number, but is ${show(user)}`);
}

/** An identity that the user's own function told. An address is nobody's name: it may be anyone's next. */
function told(socket: Socket, name: unknown): Identity {
  const text = identityText(name);
  const budget = keyOf("id", text);
  const isSender = text !== socket.id && !isAddress(text);
  return { budget, sender: isSender ? budget : keyOf("connection", socket.id) };
}

/** Checks what a function of the user told as an identity. */
export function identityText(name: unknown): string {
  if (typeof name === "string" && name !== "") return name;
  throw new TypeError(`identify must answer a non-empty string, but answered ${show(name)}`);
}
