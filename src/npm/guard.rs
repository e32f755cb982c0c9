//! What watches a store.

use wasm_bindgen::prelude::*;

use crate::guard::{Failure, Guard, OnStoreError};
use crate::host::{number, timestamp};
use crate::time::Timestamp;

/// Watches one store for one caller.
#[wasm_bindgen]
pub struct StoreGuard(Guard);

#[wasm_bindgen]
impl StoreGuard {
    /// `on_store_error` has been checked.
    #[wasm_bindgen(constructor)]
    pub fn new(on_store_error: &str) -> StoreGuard {
        StoreGuard(Guard::new(OnStoreError::named(on_store_error).unwrap_or(OnStoreError::Throw)))
    }

    /// Whether to ask the store now.
    pub fn ask(&mut self, now: f64) -> bool {
        self.0.ask(timestamp(now))
    }

    /// How long the store is left alone from now on.
    pub fn closed_for_ms(&self, now: f64) -> f64 {
        number(self.0.closed_for(timestamp(now)).as_ms())
    }

    /// The store answered.
    pub fn answered(&mut self) {
        self.0.answered();
    }

    /// The call failed with an error of that code.
    pub fn failed(&mut self, code: &str, now: f64) {
        let failure = match code {
            "store" => Failure::Store,
            "timeout" => Failure::Timeout,
            _ => Failure::Call,
        };
        self.0.failed(failure, timestamp(now));
    }

    /// What to do instead of an answer: "throw", "allow", "deny" or "local".
    pub fn action(&self) -> String {
        self.0.verdict(Timestamp::default()).action.name().into()
    }

    /// When asking again may help.
    pub fn retry_after_ms(&self, now: f64) -> f64 {
        number(self.0.verdict(timestamp(now)).retry_after.as_ms())
    }
}
