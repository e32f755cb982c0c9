import { ipKey } from "../ip.js";
import { bad } from "../options.js";
import type { Conn } from "./server.js";

/** Which proxies to believe: how many stand in front, or who they are. */
type Trust = number | Subnet[];

interface Subnet {
  readonly address: string;
  readonly bits: number;
}

/** Finds the addresses of clients, behind the proxies that are trusted. */
export class ClientAddresses {
  readonly #trust: Trust;

  constructor(trustProxy: unknown) {
    this.#trust = trustFrom(trustProxy);
  }

  /** The key of the client's address; undefined where there is none (WebTransport, a Unix socket). */
  of({ remoteAddress, request }: Conn): string | undefined {
    const peer = keyOf(remoteAddress);
    const forwarded = request?.headers["x-forwarded-for"];
    if (forwarded === undefined || this.#trust === 0) return peer;
    // Read from the right: what stands left of what the trusted proxies wrote is the client's own invention.
    const hops = String(forwarded)
      .split(",")
      .map((hop) => hop.trim())
      .reverse();
    const client =
      typeof this.#trust === "number"
        ? hops[this.#trust - 1]
        : firstUntrusted([remoteAddress, ...hops], this.#trust);
    return keyOf(client) ?? peer;
  }
}

/** True for the text of an address, as it is or as ipKey writes it. */
export function isAddress(text: string): boolean {
  return keyOf(text.replace(/\/\d{1,3}$/, "")) !== undefined;
}

function keyOf(address: string | undefined, ipv6Subnet = 64): string | undefined {
  try {
    return address === undefined ? undefined : ipKey(address, { ipv6Subnet });
  } catch {
    return undefined;
  }
}

/** One way of writing an address: IPv4-mapped IPv6 as IPv4, and no port. */
function canonical(address: string | undefined): string | undefined {
  return keyOf(address, 128)?.replace("/128", "");
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
  if (isIpv6) return keyOf(address, bits) === keyOf(candidate, bits);
  const hidden = 2 ** (32 - bits);
  return Math.floor(ipv4(address) / hidden) === Math.floor(ipv4(candidate) / hidden);
}

function ipv4(address: string): number {
  return address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

function trustFrom(given: unknown): Trust {
  if (given === undefined) return 0;
  if (Number.isSafeInteger(given) && (given as number) >= 0) return given as number;
  if (Array.isArray(given)) return given.map((entry, at) => subnetFrom(entry, at));
  const expected = "a number of proxies, or a list of their addresses and CIDRs";
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
