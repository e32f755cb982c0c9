//! Checked options: limits, and what makes an alarm.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::burst::{BurstPolicy, Trigger};
use crate::dedup::Tag;
use crate::host::{bad_policy, limit_options, millis, number, whole};
use crate::limit::{Limit, Limits};
use crate::store::redis;

/// The limits of one Limiter.
#[wasm_bindgen]
pub struct LimitSet(pub(super) Limits);

#[wasm_bindgen]
impl LimitSet {
    /// Checks the options of each limit; throws what makes no sense.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &Array) -> Result<LimitSet, JsValue> {
        let bad = |error, index| bad_policy(&error, Some(index));
        let options = limit_options(options).map_err(|(error, index)| bad(error, index))?;
        let mut limits = Vec::with_capacity(options.len());
        for (index, options) in options.iter().enumerate() {
            limits.push(Limit::new(options).map_err(|error| bad(error, index))?);
        }
        Limits::new(limits).map(LimitSet).map_err(|error| bad_policy(&error, None))
    }

    /// The limits in the words of the Redis script.
    pub fn wire(&self) -> String {
        redis::limits_text(&self.0)
    }

    /// Capacity of each limit.
    pub fn capacities(&self) -> Vec<f64> {
        self.0.iter().map(|limit| number(limit.capacity())).collect()
    }
}

/// What makes an alarm.
#[wasm_bindgen]
pub struct BurstSet(pub(super) BurstPolicy);

#[wasm_bindgen]
impl BurstSet {
    /// An observation in the words of the Redis script.
    pub fn wire(&self, weight: f64, nonce: Option<String>) -> String {
        let nonce = nonce.map(|nonce| Tag::hash(nonce.as_bytes()));
        redis::burst_text(&self.0, whole(weight), nonce.as_ref())
    }

    /// Checks the numbers; throws what makes no sense.
    #[wasm_bindgen(constructor)]
    pub fn new(
        threshold: f64,
        window_ms: f64,
        cooldown_ms: f64,
        sliding: bool,
    ) -> Result<BurstSet, JsValue> {
        let trigger = if sliding { Trigger::Sliding } else { Trigger::Tumbling };
        BurstPolicy::new(whole(threshold), millis(window_ms), millis(cooldown_ms), trigger)
            .map(BurstSet)
            .map_err(|error| bad_policy(&error, None))
    }
}
