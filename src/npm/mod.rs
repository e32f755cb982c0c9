//! The classes of the npm package: thin, numbers in and numbers out. Decisions are read from a block of
//! eight numbers that stays where it is; the facade knows its layout.

mod cas;
mod guard;
mod memory;
mod messages;
mod policies;
mod replies;
mod shard;
mod tier;

use js_sys::JsString;
use wasm_bindgen::prelude::*;

use crate::dedup::Tag;
use crate::host::number;
use crate::store::{Key, Kind, Slot};
use crate::time::Millis;

/// Says that there is no slot, or that a slot is stale.
const NONE: u32 = u32::MAX;

fn held(index: u32, generation: u32) -> Option<Slot> {
    (index != NONE).then_some(Slot { index, generation })
}

/// The store key of a prefix, a kind ("l", "m" or "b") and a key, whatever characters are in them.
#[wasm_bindgen]
pub fn store_key(
    store_prefix: Option<JsString>,
    prefix: &JsString,
    kind: &str,
    key: &JsString,
) -> String {
    let kind = match kind {
        "m" => Kind::Message,
        "b" => Kind::Burst,
        _ => Kind::Limit,
    };
    let units = |text: &JsString| text.iter().collect::<Vec<u16>>();
    let store_prefix = store_prefix.as_ref().map(units);
    Key::from_utf16(store_prefix.as_deref(), &units(prefix), kind, &units(key)).as_str().into()
}

/// Milliseconds of a duration that an option may name: text with a unit; 0 for anything else.
#[wasm_bindgen]
pub fn duration_ms(text: String) -> f64 {
    number(Millis::parse(&text).unwrap_or_default().as_ms())
}

/// 128 bits of the SHA-256 of the bytes, or of their HMAC under a secret, as text.
#[wasm_bindgen]
pub fn digest(bytes: &[u8], secret: Option<Vec<u8>>) -> String {
    match secret {
        Some(secret) => Tag::keyed_hash(&secret, bytes).as_str().into(),
        None => Tag::hash(bytes).as_str().into(),
    }
}

/// The key of an address, or nothing for what is none.
#[wasm_bindgen]
pub fn ip_key(address: &str, ipv6_subnet: u32) -> Option<String> {
    crate::ip::ip_key(address, ipv6_subnet)
}
