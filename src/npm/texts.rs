//! Texts: keys, digests, durations.

use alloc::vec::Vec;

use super::exchange::EXCHANGE;
use super::numbers::number;
use crate::dedup::Tag;
use crate::store::{Key, Kind};
use crate::time::Millis;

/// The length of the store key of a prefix, a kind (0: limits, 1: ids, 2: identities) and a key, whatever characters
/// are in them: they are handed over in UTF-16.
#[unsafe(no_mangle)]
extern "C" fn store_key(store_prefix: i32, prefix: i32, kind: u32, key: i32) -> i32 {
    let kind = match kind {
        0 => Kind::Limit,
        1 => Kind::Message,
        _ => Kind::Burst,
    };
    let store_prefix = units(store_prefix);
    let prefix = units(prefix).unwrap_or_default();
    let key = units(key).unwrap_or_default();
    let key = Key::from_utf16(store_prefix.as_deref(), &prefix, kind, &key);
    EXCHANGE.answer(key.as_str().into())
}

fn units(length: i32) -> Option<Vec<u16>> {
    let bytes = EXCHANGE.bytes(length)?;
    Some(bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect())
}

/// Milliseconds of a duration that an option may name: text with a unit; 0 for anything else.
#[unsafe(no_mangle)]
extern "C" fn duration_ms(text: i32) -> f64 {
    number(EXCHANGE.text(text).and_then(|text| Millis::parse(&text)).unwrap_or_default().as_ms())
}

/// The length of 128 bits of the SHA-256 of the bytes, or of their HMAC under a secret, as text.
#[unsafe(no_mangle)]
extern "C" fn digest(secret: i32, bytes: i32) -> i32 {
    let secret = EXCHANGE.bytes(secret);
    let tag = EXCHANGE.on(|exchange| {
        let bytes = exchange.next(bytes).unwrap_or_default();
        secret.map_or_else(|| Tag::hash(bytes), |secret| Tag::keyed_hash(&secret, bytes))
    });
    EXCHANGE.answer(tag.as_str().into())
}

/// The length of the key of an address; 0 for what is none.
#[unsafe(no_mangle)]
extern "C" fn ip_key(address: i32, ipv6_subnet: u32) -> i32 {
    let key = EXCHANGE.text(address).and_then(|address| crate::ip::ip_key(&address, ipv6_subnet));
    EXCHANGE.answer(key.unwrap_or_default())
}
