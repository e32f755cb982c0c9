//! Operations on ids.

use wasm_bindgen::prelude::*;

use crate::dedup::{MessageOp, Tag};
use crate::host::{millis, whole};
use crate::store::redis;

/// An operation on an id, ready to be run on any store.
#[wasm_bindgen]
pub struct MessageCall(pub(super) MessageOp);

#[wasm_bindgen]
impl MessageCall {
    /// The operation in the words of the Redis script.
    pub fn wire(&self) -> String {
        redis::message_text(&self.0)
    }

    /// True for exactly one caller.
    pub fn first(ttl_ms: f64) -> MessageCall {
        MessageCall(MessageOp::First { ttl: millis(ttl_ms) })
    }

    /// The id is done, whatever was known of it.
    pub fn put(ttl_ms: f64) -> MessageCall {
        MessageCall(MessageOp::Put { ttl: millis(ttl_ms) })
    }

    /// What a claim would find.
    pub fn look() -> MessageCall {
        MessageCall(MessageOp::Look)
    }

    /// Whether this is a look.
    pub fn is_look(&self) -> bool {
        self.0 == MessageOp::Look
    }

    /// Takes the id.
    pub fn claim(token: &str, lease_ms: f64, payload: Option<String>) -> MessageCall {
        let (token, payload) = (tag(token), payload.as_deref().map(tag));
        MessageCall(MessageOp::Claim { token, lease: millis(lease_ms), payload })
    }

    /// Makes a held lease last from now.
    pub fn renew(token: &str, lease_ms: f64, payload: Option<String>) -> MessageCall {
        let (token, payload) = (tag(token), payload.as_deref().map(tag));
        MessageCall(MessageOp::Renew { token, lease: millis(lease_ms), payload })
    }

    /// The work is done.
    pub fn commit(
        token: &str,
        ttl_ms: f64,
        result: Option<String>,
        payload: Option<String>,
    ) -> MessageCall {
        let (token, payload) = (tag(token), payload.as_deref().map(tag));
        let result = result.map(Into::into);
        MessageCall(MessageOp::Commit { token, ttl: millis(ttl_ms), result, payload })
    }

    /// The work failed.
    pub fn release(token: &str) -> MessageCall {
        MessageCall(MessageOp::Release { token: tag(token) })
    }

    /// Forgets the id.
    pub fn forget() -> MessageCall {
        MessageCall(MessageOp::Forget)
    }
}

/// The tag of a number: its digits.
pub(super) fn numbered(token: f64) -> Tag {
    tag(&whole(token).to_string())
}

/// Tags are made by the facade and fit; anything else is hashed into one.
fn tag(text: &str) -> Tag {
    Tag::new(text).unwrap_or_else(|| Tag::hash(text.as_bytes()))
}
