import { addressKey } from "../ip.js";
import { TrustedProxies } from "../trusted-proxies.js";

/** How the requests of a framework are read. */
export interface Reader<Q> {
  header(request: Q, name: string): string | undefined;
  /** Who is connected. Where there is none, requests are handed over without their peers. */
  readonly peer?: (request: Q) => string | undefined;
  /** The client's address as the framework tells it, where that is not the peer's. */
  readonly client?: (request: Q) => string | undefined;
}

/** Finds the key of a client's address; undefined where these options leave no way to know one. */
export function clientKeyOf<Q>(
  trustProxy: unknown,
  { header, peer, client = peer }: Reader<Q>,
): ((request: Q) => string | undefined) | undefined {
  const orPeer = (address: (request: Q) => string | undefined) => (request: Q) =>
    addressKey(address(request)) ?? addressKey(peer?.(request));
  if (trustProxy === undefined) return client && orPeer(client);
  if (trustProxy === "cloudflare") return orPeer((request) => header(request, "cf-connecting-ip"));
  const proxies = new TrustedProxies(trustProxy, ', or "cloudflare"');
  const forwarded = (request: Q) => header(request, "x-forwarded-for");
  if (peer) return (request) => proxies.client(peer(request), forwarded(request));
  if (proxies.areNone) return undefined;
  return (request) => proxies.clientOfUnknownPeer(forwarded(request));
}
