//! A host's store: any JavaScript object with `get` and `compareAndSet`, synchronous or not.

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::numbers::{number, timestamp};
use crate::error::Error;
use crate::store::Cas;
use crate::time::{Clock, MAX_SAFE, Millis, Timestamp};

#[wasm_bindgen]
extern "C" {
    /// Methods are called on the object itself, so `this` and private fields stay intact; what they
    /// throw is an `Err`. They answer a value or a promise of one.
    #[wasm_bindgen(
        typescript_type = "{ get(key: string): unknown; compareAndSet(key: string, expected: string | null, next: string, ttlMs: number): unknown; now?(): unknown }"
    )]
    pub(crate) type Adapter;

    #[wasm_bindgen(structural, method, catch)]
    fn get(this: &Adapter, key: &str) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(structural, method, catch, js_name = compareAndSet)]
    fn compare_and_set(
        this: &Adapter,
        key: &str,
        expected: &JsValue,
        next: &str,
        ttl_ms: f64,
    ) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(structural, method, catch)]
    fn now(this: &Adapter) -> Result<JsValue, JsValue>;
}

/// An adapter, and the caller's clock for one that has none.
pub(crate) struct JsCas {
    adapter: Adapter,
    caller_now: Timestamp,
}

impl JsCas {
    pub(crate) const fn new(adapter: Adapter, caller_now: Timestamp) -> Self {
        Self { adapter, caller_now }
    }
}

impl Cas for JsCas {
    type Error = JsValue;

    async fn get(&self, key: &str) -> Result<Option<String>, Error<JsValue>> {
        let value = settled(self.adapter.get(key)).await?;
        if value.is_null() || value.is_undefined() {
            return Ok(None);
        }
        value
            .as_string()
            .map(Some)
            .ok_or(Error::Nonsense("get() must answer a string, null or undefined"))
    }

    async fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&str>,
        next: &str,
        ttl: Millis,
    ) -> Result<bool, Error<JsValue>> {
        let expected = expected.map_or(JsValue::NULL, JsValue::from_str);
        let written = self.adapter.compare_and_set(key, &expected, next, number(ttl.as_ms()));
        settled(written)
            .await?
            .as_bool()
            .ok_or(Error::Nonsense("compareAndSet() must answer true or false"))
    }

    async fn now(&self) -> Result<(Timestamp, Clock), Error<JsValue>> {
        let has_clock = Reflect::get(&self.adapter, &JsValue::from_str("now"))
            .is_ok_and(|now| now.is_function());
        if !has_clock {
            return Ok((self.caller_now, Clock::Caller));
        }
        let now = settled(self.adapter.now()).await?.as_f64();
        let now = now.filter(|now| *now >= 0.0 && *now <= number(MAX_SAFE));
        let now = now.ok_or(Error::Nonsense("now() must answer milliseconds"))?;
        Ok((timestamp(now), Clock::Store))
    }
}

async fn settled(answer: Result<JsValue, JsValue>) -> Result<JsValue, Error<JsValue>> {
    let promise = Promise::resolve(&answer.map_err(Error::Store)?);
    JsFuture::from(promise).await.map_err(Error::Store)
}
