//! Addresses as keys: an IPv6 host owns a whole prefix, so a prefix is what gets limited.

use alloc::string::String;

use crate::text::{cut, push_hex, push_number};

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
    match parse(address.as_bytes())? {
        Address::V4(bytes) => Some(v4_text(bytes)),
        Address::V6([0, 0, 0, 0, 0, 0xffff, high, low]) => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(v4_text([a, b, c, d]))
        }
        Address::V6(groups) => {
            let mut left = Some(ipv6_subnet).filter(|bits| *bits <= 128)?;
            let masked = groups.map(|group| {
                let hidden = 16_u32.saturating_sub(left);
                left = left.saturating_sub(16);
                group & u16::MAX.checked_shl(hidden).unwrap_or(0)
            });
            let mut text = v6_text(masked);
            text.push('/');
            push_number(&mut text, ipv6_subnet.into());
            Some(text)
        }
    }
}

enum Address {
    V4([u8; 4]),
    V6([u16; 8]),
}

fn parse(address: &[u8]) -> Option<Address> {
    let host = match address.strip_prefix(b"[") {
        Some(rest) => {
            let (host, port) = cut(rest, b']')?;
            (port.is_empty() || is_port(port.strip_prefix(b":")?)).then_some(host)?
        }
        None => match cut(address, b':') {
            Some((host, port)) if cut(host, b'.').is_some() && is_port(port) => host,
            _ => address,
        },
    };
    let bare = match cut(host, b'%') {
        Some((bare, zone)) if !zone.is_empty() => bare,
        _ => host,
    };
    match v4(bare) {
        Some(bytes) => (bare.len() == host.len()).then_some(Address::V4(bytes)),
        None => v6(bare).map(Address::V6),
    }
}

fn v4(text: &[u8]) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for byte in &mut bytes {
        let part = parts.next()?;
        let plain = part == b"0" || !part.starts_with(b"0");
        *byte = u8::try_from(read_number(part, 10, 3).filter(|_| plain)?).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

fn v6(text: &[u8]) -> Option<[u16; 8]> {
    let mut groups = [0; 8];
    let Some(gap) = text.windows(2).position(|pair| pair == b"::") else {
        return (read_groups(text, &mut groups)? == 8).then_some(groups);
    };
    let (head, tail) = text.split_at_checked(gap)?;
    let mut last = [0; 8];
    let first_count = read_groups(head, &mut groups)?;
    let last_count = read_groups(tail.get(2..)?, &mut last)?;
    // What "::" stands for is one group at least; an IPv4 tail ends the whole address.
    if first_count.saturating_add(last_count) > 7 || cut(head, b'.').is_some() {
        return None;
    }
    let at = 8_usize.saturating_sub(last_count);
    for (group, read) in groups.iter_mut().skip(at).zip(last) {
        *group = read;
    }
    Some(groups)
}

/// Reads groups with colons between them, of which the last two may be an IPv4 address; answers how many.
fn read_groups(text: &[u8], groups: &mut [u16; 8]) -> Option<usize> {
    let mut count = 0_usize;
    let mut left = (!text.is_empty()).then_some(text);
    while let Some(text) = left {
        let (part, rest) = cut(text, b':').map_or((text, None), |(part, rest)| (part, Some(rest)));
        let more = match v4(part).filter(|_| rest.is_none()) {
            Some([a, b, c, d]) => {
                *groups.get_mut(count.saturating_add(1))? = u16::from_be_bytes([c, d]);
                *groups.get_mut(count)? = u16::from_be_bytes([a, b]);
                2
            }
            None => {
                *groups.get_mut(count)? = u16::try_from(read_number(part, 16, 4)?).ok()?;
                1
            }
        };
        count = count.saturating_add(more);
        left = rest;
    }
    Some(count)
}

fn v4_text(bytes: [u8; 4]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        push_number(&mut text, byte.into());
    }
    text
}

/// As RFC 5952 says: the longest run of zeros, the first of equals, is "::" if it is longer than one.
fn v6_text(groups: [u16; 8]) -> String {
    let (mut longest, mut zeros, mut run) = (0_usize, 0_usize, 0_usize);
    for (index, group) in groups.iter().enumerate() {
        run = if *group == 0 { run.saturating_add(1) } else { 0 };
        if run > zeros.max(1) {
            (longest, zeros) = (index.saturating_add(1).saturating_sub(run), run);
        }
    }
    let after = longest.saturating_add(zeros);
    let mut text = String::new();
    for (index, group) in groups.into_iter().enumerate() {
        if zeros > 0 && (longest..after).contains(&index) {
            if index == longest {
                text.push_str("::");
            }
            continue;
        }
        if index > 0 && (zeros == 0 || index != after) {
            text.push(':');
        }
        push_hex(&mut text, group.into());
    }
    text
}

fn is_port(text: &[u8]) -> bool {
    read_number(text, 10, 5).is_some()
}

/// A number of so many digits at most.
fn read_number(text: &[u8], radix: u32, most: usize) -> Option<u32> {
    let add = |sum: u32, byte: &u8| {
        let digit = match byte {
            b'0'..=b'9' => byte.wrapping_sub(b'0'),
            b'a'..=b'f' | b'A'..=b'F' if radix == 16 => (byte | 0x20).wrapping_sub(b'a' - 10),
            _ => return None,
        };
        Some(sum.wrapping_mul(radix).wrapping_add(digit.into()))
    };
    let fits = (1..=most).contains(&text.len());
    if fits { text.iter().try_fold(0, add) } else { None }
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

    proptest::proptest! {
        #[test]
        fn addresses_are_read_and_written_as_by_the_standard_library(
            bits: u128,
            kept: u128,
            shift in 0_u32..128,
            junk in "[0-9a-fA-F:.]{0,20}|([0-9a-f]{0,5}:){0,9}[0-9a-f]{0,4}|(:{0,2}[0-9]{1,3}\\.){3}[0-9]{1,3}",
        ) {
            let address = core::net::Ipv6Addr::from_bits((bits & kept) >> shift);
            for text in [address.to_string(), junk] {
                let expected = text.parse::<core::net::IpAddr>().ok().map(|ip| match ip.to_canonical() {
                    core::net::IpAddr::V4(v4) => v4.to_string(),
                    core::net::IpAddr::V6(v6) => format!("{v6}/128"),
                });
                // A port after what has a dot is ours to drop, and not the standard library's.
                let has_port = text.contains('.') && text.split_once(':').is_some_and(|(host, _)| host.contains('.'));
                if !has_port {
                    proptest::prop_assert_eq!(ip_key(&text, 128), expected, "{}", text);
                }
            }
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
