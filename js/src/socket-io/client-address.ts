import { TrustedProxies } from "../trusted-proxies.js";
import type { Conn } from "./server.js";

/** Finds the addresses of clients, behind the proxies that are trusted. */
export class ClientAddresses {
  readonly #proxies: TrustedProxies;

  constructor(trustProxy: unknown) {
    this.#proxies = new TrustedProxies(trustProxy);
  }

  /** The key of the client's address; undefined where there is none (WebTransport, a Unix socket). */
  of({ remoteAddress, request }: Conn): string | undefined {
    return this.#proxies.client(remoteAddress, request?.headers["x-forwarded-for"]);
  }
}
