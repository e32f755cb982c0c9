//! Store keys: prefix, kind and the caller's own key, joined so that no two different tuples ever meet.
//!
//! `<prefix>:<kind>:<key>`, or `<store prefix>/<prefix>:<kind>:<key>`. Prefixes have their colons and
//! slashes escaped, so the first two colons always part the three. Everything but plain ASCII is percent-encoded, surrogates without a partner included, so a
//! key is printable in every store. A key that gets too long is replaced by its hash, under a kind of its own.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::digest;

/// A longer key is hashed.
const MAX_KEY_CHARS: usize = 200;

/// What is kept under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Limits and blocks.
    Limit,
    /// Message ids.
    Message,
    /// Identities under watch.
    Burst,
}

impl Kind {
    /// What stands in a key for it: before a text, and before the hash of a long one.
    const fn marks(self) -> [&'static str; 2] {
        match self {
            Self::Limit => [":l:", ":l#:"],
            Self::Message => [":m:", ":m#:"],
            Self::Burst => [":b:", ":b#:"],
        }
    }
}

/// The key under which a store keeps a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// The key of a Rust string.
    ///
    /// ```
    /// use tidegate::{Key, Kind};
    /// assert_eq!(Key::new("tg", Kind::Limit, "203.0.113.9").as_str(), "tg:l:203.0.113.9");
    /// assert_ne!(Key::new("a:b", Kind::Limit, "c"), Key::new("a", Kind::Limit, "b:c"));
    /// ```
    #[must_use]
    pub fn new(prefix: &str, kind: Kind, key: &str) -> Self {
        if Self::is_plain(key) {
            return Self([&Self::head(prefix, kind), key].concat().into());
        }
        Self::join(&prefix_text(prefix.as_bytes()), kind, key.as_bytes())
    }

    /// The key of UTF-16 strings as JavaScript has them, well-formed or not.
    #[must_use]
    pub fn from_utf16(
        store_prefix: Option<&[u16]>,
        prefix: &[u16],
        kind: Kind,
        key: &[u16],
    ) -> Self {
        let prefix = prefix_text(&wtf8(prefix));
        let prefix = match store_prefix {
            Some(store) => joined(&[&prefix_text(&wtf8(store)), "/", &prefix]),
            None => prefix,
        };
        Self::join(&prefix, kind, &wtf8(key))
    }

    /// The key of text in WTF-8, which is what both others come down to.
    #[cfg(feature = "worker")]
    pub(crate) fn from_wtf8(prefix: &[u8], kind: Kind, key: &[u8]) -> Self {
        Self::join(&prefix_text(prefix), kind, key)
    }

    /// A key that was joined before, and went through a host that could not keep its type.
    #[cfg(any(feature = "npm-stores", feature = "worker"))]
    pub(crate) fn joined(text: String) -> Self {
        Self(text.into())
    }

    fn join(prefix: &str, kind: Kind, key: &[u8]) -> Self {
        let [kind, long] = kind.marks();
        let text = escape(key, false);
        let joined = if text.len() > MAX_KEY_CHARS {
            joined(&[prefix, long, &digest::short(key)])
        } else {
            joined(&[prefix, kind, &text])
        };
        Self(joined.into())
    }

    /// What stands before a caller's own text wherever that [is plain](Self::is_plain).
    pub(crate) fn head(prefix: &str, kind: Kind) -> String {
        let [kind, _] = kind.marks();
        [&prefix_text(prefix.as_bytes()), kind].concat()
    }

    /// Whether a caller's own text stands in a key as it is.
    #[inline]
    pub(crate) fn is_plain(own: &str) -> bool {
        let bytes = own.as_bytes();
        let plain = match bytes.last_chunk() {
            Some(last) => {
                are_plain(*last) && bytes.as_chunks().0.iter().all(|part| are_plain(*part))
            }
            None => bytes.iter().all(|byte| is_plain(*byte)),
        };
        plain && bytes.len() <= MAX_KEY_CHARS
    }

    /// Its head and what is behind it.
    #[cfg(not(bare))]
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        let text = self.0.as_bytes();
        let mut colons = text.iter().enumerate().filter(|(_, byte)| **byte == b':');
        let head = colons.nth(1).map_or(0, |(at, _)| at.saturating_add(1));
        text.split_at_checked(head).unwrap_or((text, &[]))
    }

    /// Whether this is a key of the prefix, or of one below it: `prefix/…`, or a store's own before others.
    #[cfg(any(test, feature = "worker"))]
    pub(crate) fn is_under(&self, prefix: &str) -> bool {
        let rest = self.0.strip_prefix(&prefix_text(prefix.as_bytes()));
        rest.is_some_and(|rest| [":", "/", "%2F"].iter().any(|part| rest.starts_with(part)))
    }

    /// The text that the store sees.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A prefix as it stands in keys; a long one is its hash, which no other prefix can be taken for.
fn prefix_text(prefix: &[u8]) -> String {
    let text = escape(prefix, true);
    if text.len() > MAX_KEY_CHARS { joined(&["%", &digest::short(prefix)]) } else { text }
}

fn joined(parts: &[&str]) -> String {
    parts.iter().copied().collect()
}

/// Percent-encodes what is not plain printable ASCII, the characters with a meaning in Redis Cluster, and
/// what parts the pieces of a prefix where asked.
fn escape(bytes: &[u8], parting: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if is_plain(*byte) && !(parting && matches!(byte, b':' | b'/')) {
            text.push(char::from(*byte));
        } else {
            text.push('%');
            text.extend([byte >> 4, byte & 15].map(hex_digit));
        }
    }
    text
}

#[inline(always)]
const fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x7f) && !matches!(byte, b'%' | b'{' | b'}')
}

/// Eight at once, as one number: each term has a bit where a byte is beyond ASCII, below the space, `%`, or one of the
/// odd ones from `{` to DEL.
#[inline(always)]
const fn are_plain(bytes: [u8; 8]) -> bool {
    let text = u64::from_le_bytes(bytes);
    let low = text.wrapping_sub(eight(b' ')) & !text;
    let percent = text ^ eight(b'%');
    let percent = percent.wrapping_sub(eight(1)) & !percent;
    let odd = text.wrapping_add(eight(0x80 - b'{')) & (text << 7);
    (text | low | percent | odd) & eight(0x80) == 0
}

#[inline(always)]
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

fn hex_digit(value: u8) -> char {
    b"0123456789ABCDEF".get(usize::from(value)).map_or('0', |digit| char::from(*digit))
}

/// UTF-8 as far as it goes; a surrogate without a partner as the three bytes it would have (WTF-8).
fn wtf8(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(units.len());
    push_wtf8(&mut bytes, units.iter().copied());
    bytes
}

pub(crate) fn push_wtf8(bytes: &mut Vec<u8>, units: impl IntoIterator<Item = u16>) {
    for unit in char::decode_utf16(units) {
        match unit {
            Ok(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let [high, low] = lone.unpaired_surrogate().to_be_bytes();
                let middle = ((high & 0x0f) << 2) | (low >> 6);
                bytes.extend_from_slice(&[0xe0 | (high >> 4), 0x80 | middle, 0x80 | (low & 0x3f)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(prefix: &str, key: &str) -> String {
        Key::new(prefix, Kind::Limit, key).as_str().into()
    }

    #[test]
    fn different_tuples_never_meet() {
        let long = "k".repeat(10_000);
        let longer = "k".repeat(10_001);
        let hashed = digest::short(long.as_bytes());
        let tuples = [
            ("a:b", "c"),
            ("a", "b:c"),
            ("a%3Ab", "c"),
            ("a", ":l:c"),
            ("a", "%"),
            ("a", "%25"),
            ("a", "{x}"),
            ("a", "x"),
            ("a", "\0"),
            ("a", "\n"),
            ("a", "__proto__"),
            ("a", "*"),
            ("a", "?["),
            ("", "a"),
            ("a", ""),
            ("a", &long),
            ("a", &longer),
            ("a", &hashed),
            ("a:l#", &hashed),
            ("é", "c"),
            ("e", "\u{301}c"),
        ];
        let mut keys: Vec<_> = tuples.iter().map(|(prefix, own)| key(prefix, own)).collect();
        assert!(
            keys.iter()
                .all(|key| key.len() <= 420 && key.bytes().all(|b| (0x20..0x7f).contains(&b)))
        );
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), tuples.len());
    }

    #[test]
    fn a_text_is_plain_where_it_is_not_escaped_and_not_hashed() {
        for byte in 0..=255_u8 {
            let escaped = escape(&[byte], false).len() > 1;
            for (at, len) in [(0, 1), (6, 7), (0, 8), (7, 8), (0, 20), (10, 20), (19, 20)] {
                let mut bytes = vec![b'z'; len];
                bytes[at] = byte;
                // What is not a character here is one as the first of two.
                let text = String::from_utf8(bytes).unwrap_or_else(|_| "zzzzzz\u{e9}zzzz".into());
                assert_eq!(Key::is_plain(&text), !escaped, "{byte} at {at} of {len}");
            }
        }
        assert!(Key::is_plain("") && Key::is_plain(&"k".repeat(200)));
        assert!(!Key::is_plain(&"k".repeat(201)));
    }

    #[test]
    fn a_prefix_has_its_own_keys_and_those_below_it() {
        let is_under = |own: &str, prefix| Key::new(own, Kind::Burst, "k").is_under(prefix);
        let long = "p".repeat(300);
        for (own, prefix) in [("app", "app"), ("app/x", "app"), ("a:b", "a:b"), (&long, &long)] {
            assert!(is_under(own, prefix), "{own} {prefix}");
        }
        for (own, prefix) in
            [("apple", "app"), ("app:x", "app"), ("ap", "app"), ("a%2Fb", "a"), ("", "app")]
        {
            assert!(!is_under(own, prefix), "{own} {prefix}");
        }
        let below = Key::from_utf16(Some(&[0x61]), &[0x62], Kind::Limit, &[0x63]);
        assert!(below.is_under("a") && !below.is_under("b"));
    }

    #[test]
    fn unpaired_surrogates_are_ordinary_and_distinct() {
        let of =
            |units: &[u16]| Key::from_utf16(None, &[0x61], Kind::Limit, units).as_str().to_owned();
        assert_eq!(of(&[0xd800]), "a:l:%ED%A0%80");
        assert_ne!(of(&[0xd800]), of(&[0xd801]));
        assert_ne!(of(&[0xd800]), of(&[0xfffd]));
        assert_eq!(of(&[0xd83d, 0xde00]), key("a", "😀"));
    }
}
