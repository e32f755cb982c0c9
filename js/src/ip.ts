import { keyOfAddress } from "./core.js";
import { bad, checkOptions } from "./options.js";

/**
 * The key of an address: "203.0.113.9" as is; IPv6 masked to `ipv6Subnet` bits (default 64) and written
 * "2001:db8:1:2::/64"; IPv4-mapped IPv6 as IPv4; a zone id and a port are dropped.
 *
 * @throws TidegateError "bad_argument" on what is not an address.
 * @example
 * ipKey("2001:DB8:1:2::9"); // "2001:db8:1:2::/64"
 */
export function ipKey(address: string, options: { ipv6Subnet?: number } = {}): string {
  checkOptions(options, ["ipv6Subnet"], "options", "bad_argument");
  const subnet = options.ipv6Subnet ?? 64;
  if (!Number.isInteger(subnet) || subnet < 1 || subnet > 128) {
    bad("bad_argument", 'option "ipv6Subnet"', subnet, "an integer from 1 to 128");
  }
  const key = typeof address === "string" ? keyOfAddress(address, subnet) : undefined;
  return key ?? bad("bad_argument", "address", address, "an IPv4 or IPv6 address");
}

/** The same, and undefined for what is not an address. */
export function addressKey(address: string | undefined, ipv6Subnet = 64): string | undefined {
  try {
    return address === undefined ? undefined : ipKey(address, { ipv6Subnet });
  } catch {
    return undefined;
  }
}

/** True for the text of an address, as it is or as ipKey writes it. */
export function isAddress(text: string): boolean {
  return addressKey(text.replace(/\/\d{1,3}$/, "")) !== undefined;
}
