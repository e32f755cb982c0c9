import { addressKey } from "./ip.js";
import { bad } from "./options.js";

/** Which proxies to believe: how many stand in front, or who they are. */
type Trust = number | Subnet[];

interface Subnet {
  readonly address: string;
  readonly bits: number;
}

/** Tells clients from the proxies in front, by what the trusted ones wrote into x-forwarded-for. */
export class TrustedProxies {
  readonly #trust: Trust;

  /** @param also what else the option may be, for the text of its error */
  constructor(trustProxy: unknown, also = "") {
    this.#trust = trustFrom(trustProxy, also);
  }

  /** Whether no proxy is believed: then the client is whoever is connected. */
  get areNone(): boolean {
    return this.#trust === 0 || (Array.isArray(this.#trust) && this.#trust.length === 0);
  }

  /** The key of the client's address; undefined where there is none (WebTransport, a Unix socket). */
  client(peer: string | undefined, forwarded: unknown): string | undefined {
    return this.#nearest([peer], forwarded) ?? addressKey(peer);
  }

  /** The same where a platform hands over requests without their peers, and is believed to stand behind the proxies. */
  clientOfUnknownPeer(forwarded: unknown): string | undefined {
    return this.#nearest([], forwarded);
  }

  #nearest(peers: (string | undefined)[], forwarded: unknown): string | undefined {
    // Read from the right: what stands left of what the trusted proxies wrote is the client's own invention.
    const hops = String(forwarded ?? "")
      .split(",")
      .map((hop) => hop.trim())
      .reverse();
    const client =
      typeof this.#trust === "number"
        ? hops[this.#trust - 1]
        : firstUntrusted([...peers, ...hops], this.#trust);
    return addressKey(client);
  }
}

/** One way of writing an address: IPv4-mapped IPv6 as IPv4, and no port. */
function canonical(address: string | undefined): string | undefined {
  return addressKey(address, 128)?.replace("/128", "");
}

/** The nearest hop that is no trusted proxy; where all are, the furthest. */
function firstUntrusted(hops: (string | undefined)[], trusted: Subnet[]): string | undefined {
  const client = hops.findIndex((hop) => {
    const address = canonical(hop);
    return address === undefined || !trusted.some((subnet) => holds(subnet, address));
  });
  return hops.at(client);
}

function holds({ address, bits }: Subnet, candidate: string): boolean {
  const isIpv6 = address.includes(":");
  if (isIpv6 !== candidate.includes(":")) return false;
  if (bits === 0) return true;
  if (isIpv6) return addressKey(address, bits) === addressKey(candidate, bits);
  const hidden = 2 ** (32 - bits);
  return Math.floor(ipv4(address) / hidden) === Math.floor(ipv4(candidate) / hidden);
}

function ipv4(address: string): number {
  return address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

function trustFrom(given: unknown, also: string): Trust {
  if (given === undefined) return 0;
  if (Number.isSafeInteger(given) && (given as number) >= 0) return given as number;
  if (Array.isArray(given)) return given.map((entry, at) => subnetFrom(entry, at));
  const expected = `a number of proxies, or a list of their addresses and CIDRs${also}`;
  bad("bad_policy", 'option "trustProxy"', given, expected);
}

function subnetFrom(given: unknown, at: number): Subnet {
  const [, text, length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(given)) ?? [];
  const address = canonical(text);
  const most = address?.includes(":") ? 128 : 32;
  const bits = length === undefined ? most : Number(length);
  if (typeof given !== "string" || address === undefined || bits > most) {
    const expected = 'an address or a CIDR, such as "10.0.0.0/8"';
    bad("bad_policy", `option "trustProxy[${at}]"`, given, expected);
  }
  return { address, bits };
}
