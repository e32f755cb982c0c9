//! A host's store with a conditional write.

use js_sys::{Float64Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::messages::MessageCall;
use super::policies::{BurstSet, LimitSet};
use super::replies::{decision_told, message_told, observation_told, share_told};
use super::tier::TierAsk;
use crate::dedup::Tag;
use crate::error::Error;
use crate::host::{JsCas, fault, millis, timestamp, whole};
use crate::op::{OwnedOp, Reply};
use crate::store::{Call, CasStore, Key, Store};

/// A host's store with a conditional write.
#[wasm_bindgen]
pub struct Cas(JsValue);

#[wasm_bindgen]
impl Cas {
    /// The adapter's shape has been checked.
    #[wasm_bindgen(constructor)]
    pub fn new(adapter: JsValue) -> Cas {
        Cas(adapter)
    }

    /// Resolves to the decision's numbers, the reason first.
    pub fn consume(&self, key: String, limits: &LimitSet, cost: f64, now: f64) -> Promise {
        self.run(key, OwnedOp::Consume(limits.0.clone(), whole(cost)), now)
    }

    /// As `consume`, changing nothing.
    pub fn peek(&self, key: String, limits: &LimitSet, cost: f64, now: f64) -> Promise {
        self.run(key, OwnedOp::Peek(limits.0.clone(), whole(cost)), now)
    }

    /// Gives units back.
    pub fn refund(&self, key: String, limits: &LimitSet, cost: f64, now: f64) -> Promise {
        self.run(key, OwnedOp::Refund(limits.0.clone(), whole(cost)), now)
    }

    /// Answers a tier's question in numbers, or with nothing.
    pub fn ask(&self, key: String, limits: &LimitSet, ask: &TierAsk, now: f64) -> Promise {
        self.run(key, ask.0.question.owned(limits.0.clone()), now)
    }

    /// Blocks a key.
    pub fn block(&self, key: String, duration_ms: f64, now: f64) -> Promise {
        self.run(key, OwnedOp::Block(millis(duration_ms)), now)
    }

    /// Ends a block.
    pub fn unblock(&self, key: String, now: f64) -> Promise {
        self.run(key, OwnedOp::Unblock, now)
    }

    /// Forgets a Limiter's limits on a key, and the block.
    pub fn reset(&self, key: String, limits: &LimitSet, now: f64) -> Promise {
        self.run(key, OwnedOp::Reset(limits.0.clone()), now)
    }

    /// Runs an operation on an id.
    pub fn message(&self, key: String, op: &MessageCall, now: f64) -> Promise {
        self.run(key, OwnedOp::Message(op.0.clone()), now)
    }

    /// Counts an observation.
    pub fn observe(
        &self,
        key: String,
        policy: &BurstSet,
        weight: f64,
        nonce: Option<String>,
        now: f64,
    ) -> Promise {
        let nonce = nonce.map(|nonce| Tag::hash(nonce.as_bytes()));
        self.run(key, OwnedOp::Observe(policy.0, whole(weight), nonce), now)
    }

    /// The operation owns all it needs, so that freeing the objects it was made from while it runs is harmless.
    fn run(&self, key: String, op: OwnedOp, now: f64) -> Promise {
        let cas = JsCas::new(self.0.clone().unchecked_into(), timestamp(now));
        let (store, key) = (CasStore(cas), Key::joined(key));
        future_to_promise(async move {
            let calls = [Call { key: &key, op: op.as_op() }];
            let answer = store.apply(&calls).await.pop();
            answer.unwrap_or(Err(Error::Corrupt)).map(reply_told).map_err(fault)
        })
    }
}

fn reply_told(reply: Reply) -> JsValue {
    match reply {
        Reply::Decision(decision) => Float64Array::from(decision_told(&decision).as_slice()).into(),
        Reply::Share(share) => Float64Array::from(share_told(&share).as_slice()).into(),
        Reply::Message(reply) => message_told(reply),
        Reply::Observation(observation) => observation_told(&observation),
        Reply::Done => JsValue::UNDEFINED,
    }
}
