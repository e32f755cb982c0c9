//! Addresses as keys: an IPv6 host owns a whole prefix, so a prefix is what gets limited.

use core::net::{IpAddr, Ipv6Addr};

/// The key of an address: IPv4 as it is, IPv4-mapped IPv6 as that IPv4, IPv6 masked to `ipv6_subnet` bits.
///
/// A zone id and a port are dropped. Answers `None` for what is not an address.
///
/// ```
/// use tidegate::ip_key;
/// assert_eq!(ip_key("2001:DB8:1:2::9", 64).as_deref(), Some("2001:db8:1:2::/64"));
/// assert_eq!(ip_key("::ffff:203.0.113.9", 64).as_deref(), Some("203.0.113.9"));
/// assert_eq!(ip_key("nobody", 64), None);
/// ```
#[must_use]
pub fn ip_key(address: &str, ipv6_subnet: u32) -> Option<String> {
    match parse(address)?.to_canonical() {
        IpAddr::V4(v4) => Some(v4.to_string()),
        IpAddr::V6(v6) => {
            let hidden = 128_u32.checked_sub(ipv6_subnet)?;
            let mask = u128::MAX.checked_shl(hidden).unwrap_or(0);
            Some(format!("{}/{ipv6_subnet}", Ipv6Addr::from_bits(v6.to_bits() & mask)))
        }
    }
}

fn parse(address: &str) -> Option<IpAddr> {
    let host = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (port.is_empty() || is_port(port.strip_prefix(':')?)).then_some(host)?
        }
        None => match address.split_once(':') {
            Some((host, port)) if host.contains('.') && is_port(port) => host,
            _ => address,
        },
    };
    let bare =
        host.split_once('%').map_or(host, |(bare, zone)| if zone.is_empty() { host } else { bare });
    let parsed: IpAddr = bare.parse().ok()?;
    (bare == host || parsed.is_ipv6()).then_some(parsed)
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_canonical_and_junk_is_none() {
        let key = |address| ip_key(address, 64);
        for (address, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::FFFF:c000:201", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:0DB8:0001:0002::", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2::1]:443", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2::1]", "2001:db8:1:2::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(key(address).as_deref(), Some(expected), "{address}");
        }
        for junk in [
            "",
            "nobody",
            "256.1.1.1",
            "1.2.3",
            "01.2.3.4",
            "1.2.3.4.5",
            "1.2.3.4:",
            "1.2.3.4:x",
            "1.2.3.4%eth0",
            "::1%",
            "[::1",
            "[::1]x",
            "[::1]:",
            "::g",
            "1::2::3",
            " 1.2.3.4",
            "1.2.3.4 ",
            "1.2.3.4, 5.6.7.8",
        ] {
            assert_eq!(key(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn the_subnet_is_the_callers() {
        let address = "2001:db8:1234:5678:9abc:def0:1234:5678";
        assert_eq!(ip_key(address, 56).as_deref(), Some("2001:db8:1234:5600::/56"));
        assert_eq!(
            ip_key(address, 128).as_deref(),
            Some("2001:db8:1234:5678:9abc:def0:1234:5678/128")
        );
        assert_eq!(ip_key(address, 1).as_deref(), Some("::/1"));
        assert_eq!(ip_key(address, 129), None);
    }
}
