//! The classes of the npm package: thin, numbers in and numbers out. Decisions are read from a block of
//! eight numbers that stays where it is; the facade knows its layout.

use js_sys::{Array, Float64Array, JsString, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::burst::{BurstPolicy, Observation, Trigger};
use crate::dedup::{MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::guard::{Failure, Guard, OnStoreError};
use crate::host::{JsCas, bad_policy, fault, limit_options, millis, number, timestamp, whole};
use crate::limit::{Decision, Limit, Limits};
use crate::op::{Op, Reply};
use crate::store::redis;
use crate::store::{Call, CasStore, Full, Key, Kind, LimiterId, MemoryTable, OnFull, Slot, Store};
use crate::time::{Millis, Timestamp};

/// Says that there is no slot, or that a slot is stale.
const NONE: u32 = u32::MAX;

/// The limits of one Limiter.
#[wasm_bindgen]
pub struct LimitSet(Limits);

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

    /// Capacity of the first limit.
    pub fn capacity(&self) -> f64 {
        self.0.first().map_or(0.0, |limit| number(limit.capacity()))
    }
}

/// What makes an alarm.
#[wasm_bindgen]
pub struct BurstSet(BurstPolicy);

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

/// The tables of a MemoryStore.
#[wasm_bindgen]
pub struct Memory {
    table: MemoryTable,
    out: Box<[f64; 8]>,
}

#[wasm_bindgen]
impl Memory {
    /// Tables of `most_keys` keys each.
    #[wasm_bindgen(constructor)]
    pub fn new(most_keys: u32, most_result_bytes: f64, share: bool) -> Memory {
        let on_full = if share { OnFull::Share } else { OnFull::Deny };
        let bytes = usize::try_from(whole(most_result_bytes)).unwrap_or(usize::MAX);
        Memory { table: MemoryTable::new(most_keys, bytes, on_full), out: Box::new([0.0; 8]) }
    }

    /// Where the block of numbers is.
    pub fn out(&self) -> usize {
        self.out.as_ptr().addr()
    }

    /// Keys in use.
    pub fn size(&self) -> u32 {
        self.table.len()
    }

    /// Makes a Limiter's limits known.
    pub fn register(&mut self, limits: &LimitSet) -> u32 {
        self.table.register(limits.0.clone()).0
    }

    /// Lets go of a Limiter's limits.
    pub fn unregister(&mut self, limiter: u32) {
        self.table.unregister(LimiterId(limiter));
    }

    /// The reason alone; NONE when the slot is stale.
    pub fn try_consume(
        &mut self,
        limiter: u32,
        index: u32,
        generation: u32,
        cost: f64,
        now: f64,
    ) -> u32 {
        let slot = Slot { index, generation };
        let reason = self.table.try_consume(LimiterId(limiter), slot, whole(cost), timestamp(now));
        reason.map_or(NONE, |reason| reason as u32)
    }

    /// The reason, with the decision in the block; NONE when the slot is stale.
    pub fn consume(
        &mut self,
        limiter: u32,
        index: u32,
        generation: u32,
        cost: f64,
        now: f64,
    ) -> u32 {
        let slot = Slot { index, generation };
        let decision = self.table.consume(LimiterId(limiter), slot, whole(cost), timestamp(now));
        decision.map_or(NONE, |decision| self.tell(&decision))
    }

    /// As `consume`, for a key without a slot; the block then holds the slot that it was given.
    pub fn consume_new(&mut self, limiter: u32, cost: f64, now: f64) -> u32 {
        let (decision, slot) =
            self.table.consume_new(LimiterId(limiter), whole(cost), timestamp(now));
        self.tell_slot(slot);
        self.tell(&decision)
    }

    /// As `consume`, changing nothing; the slot may be NONE.
    pub fn peek(&mut self, limiter: u32, index: u32, generation: u32, cost: f64, now: f64) -> u32 {
        let slot = held(index, generation);
        let decision = self.table.peek(LimiterId(limiter), slot, whole(cost), timestamp(now));
        self.tell(&decision)
    }

    /// Gives units back.
    pub fn refund(&mut self, limiter: u32, index: u32, generation: u32, cost: f64, now: f64) {
        self.table.refund(
            LimiterId(limiter),
            Slot { index, generation },
            whole(cost),
            timestamp(now),
        );
    }

    /// Blocks a key; the slot may be NONE, and the block then holds the one that it was given.
    pub fn block(
        &mut self,
        index: u32,
        generation: u32,
        duration_ms: f64,
        now: f64,
    ) -> Result<(), JsValue> {
        let slot = self
            .table
            .block(held(index, generation), millis(duration_ms), timestamp(now))
            .map_err(full)?;
        self.tell_slot(Some(slot));
        Ok(())
    }

    /// Ends a block.
    pub fn unblock(&mut self, index: u32, generation: u32) {
        self.table.unblock(Slot { index, generation });
    }

    /// Forgets a Limiter's limits on a key, and the block.
    pub fn reset(&mut self, limiter: u32, index: u32, generation: u32) {
        self.table.reset(LimiterId(limiter), Slot { index, generation });
    }

    /// Whether this caller is the first with the id; the block holds the id's slot.
    pub fn first(
        &mut self,
        index: u32,
        generation: u32,
        ttl_ms: f64,
        now: f64,
    ) -> Result<bool, JsValue> {
        let op = MessageOp::First { ttl: millis(ttl_ms) };
        let (reply, slot) =
            self.table.message(held(index, generation), &op, timestamp(now)).map_err(full)?;
        self.tell_slot(slot);
        Ok(reply == MessageReply::Flag(true))
    }

    /// Runs an operation on an id; the block holds the id's slot.
    pub fn message(
        &mut self,
        index: u32,
        generation: u32,
        op: &MessageCall,
        now: f64,
    ) -> Result<JsValue, JsValue> {
        let answer = self.table.message(held(index, generation), &op.0, timestamp(now));
        let (reply, slot) = answer.map_err(full)?;
        self.tell_slot(slot);
        Ok(message_told(reply))
    }

    /// Counts an observation; the block holds the identity's slot.
    pub fn observe(
        &mut self,
        index: u32,
        generation: u32,
        policy: &BurstSet,
        weight: f64,
        nonce: Option<String>,
        now: f64,
    ) -> Result<JsValue, JsValue> {
        let nonce = nonce.map(|nonce| Tag::hash(nonce.as_bytes()));
        let (slot, now) = (held(index, generation), timestamp(now));
        let answer = self.table.observe(slot, &policy.0, whole(weight), nonce.as_ref(), now);
        let (observation, slot) = answer.map_err(full)?;
        self.tell_slot(slot);
        Ok(observation_told(&observation))
    }

    /// The generation of the limit's row at a slot.
    pub fn generation(&self, index: u32) -> u32 {
        self.table.limit_generation(index).unwrap_or(0)
    }

    /// A limit's slot freed since last asked, or NONE.
    pub fn freed_limit(&mut self) -> u32 {
        self.table.freed_limit().unwrap_or(NONE)
    }

    /// An id's slot freed since last asked, or NONE.
    pub fn freed_message(&mut self) -> u32 {
        self.table.freed_message().unwrap_or(NONE)
    }

    /// An identity's slot freed since last asked, or NONE.
    pub fn freed_burst(&mut self) -> u32 {
        self.table.freed_burst().unwrap_or(NONE)
    }

    fn tell(&mut self, decision: &Decision) -> u32 {
        let [decided_by, limit, remaining, retry_after, reset_after, ..] = &mut *self.out;
        for (out, value) in
            [decided_by, limit, remaining, retry_after, reset_after].into_iter().zip(told(decision))
        {
            *out = value;
        }
        decision.reason as u32
    }

    fn tell_slot(&mut self, slot: Option<Slot>) {
        let [.., index, generation] = &mut *self.out;
        let slot = slot.unwrap_or(Slot { index: NONE, generation: NONE });
        (*index, *generation) = (f64::from(slot.index), f64::from(slot.generation));
    }
}

fn held(index: u32, generation: u32) -> Option<Slot> {
    (index != NONE).then_some(Slot { index, generation })
}

fn full(_: Full) -> JsValue {
    fault(Error::Full)
}

/// A decision's numbers but for the reason.
fn told(decision: &Decision) -> [f64; 5] {
    let retry_after = decision.retry_after.map_or(f64::INFINITY, |wait| number(wait.as_ms()));
    let reset_after = number(decision.reset_after.as_ms());
    let decided_by = u32::try_from(decision.decided_by).unwrap_or(0);
    [
        f64::from(decided_by),
        number(decision.limit),
        number(decision.remaining),
        retry_after,
        reset_after,
    ]
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageTold {
    status: &'static str,
    retry_after_ms: f64,
    result: Option<Box<str>>,
}

fn message_told(reply: MessageReply) -> JsValue {
    let (mut retry_after_ms, mut stored) = (0.0, None);
    let status = match reply {
        MessageReply::Flag(true) => "yes",
        MessageReply::Flag(false) => "no",
        MessageReply::Absent => "absent",
        MessageReply::Fresh => "fresh",
        MessageReply::Mismatch => "mismatch",
        MessageReply::InProgress { retry_after } => {
            retry_after_ms = number(retry_after.as_ms());
            "in-progress"
        }
        MessageReply::Duplicate { result } => {
            stored = result;
            "duplicate"
        }
    };
    let told = MessageTold { status, retry_after_ms, result: stored };
    serde_wasm_bindgen::to_value(&told).unwrap_or(JsValue::UNDEFINED)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObservationTold {
    fired: bool,
    count: f64,
    window_ends_in_ms: f64,
    replay: bool,
}

fn observation_told(observation: &Observation) -> JsValue {
    let told = ObservationTold {
        fired: observation.fired,
        count: number(observation.count),
        window_ends_in_ms: number(observation.window_ends_in.as_ms()),
        replay: observation.replay,
    };
    serde_wasm_bindgen::to_value(&told).unwrap_or(JsValue::UNDEFINED)
}

/// An operation on an id, ready to be run on any store.
#[wasm_bindgen]
pub struct MessageCall(MessageOp);

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

/// Tags are made by the facade and fit; anything else is hashed into one.
fn tag(text: &str) -> Tag {
    Tag::new(text).unwrap_or_else(|| Tag::hash(text.as_bytes()))
}

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
        self.run(key, Asked::Consume(limits.0.clone(), whole(cost)), now)
    }

    /// As `consume`, changing nothing.
    pub fn peek(&self, key: String, limits: &LimitSet, cost: f64, now: f64) -> Promise {
        self.run(key, Asked::Peek(limits.0.clone(), whole(cost)), now)
    }

    /// Gives units back.
    pub fn refund(&self, key: String, limits: &LimitSet, cost: f64, now: f64) -> Promise {
        self.run(key, Asked::Refund(limits.0.clone(), whole(cost)), now)
    }

    /// Blocks a key.
    pub fn block(&self, key: String, duration_ms: f64, now: f64) -> Promise {
        self.run(key, Asked::Block(millis(duration_ms)), now)
    }

    /// Ends a block.
    pub fn unblock(&self, key: String, now: f64) -> Promise {
        self.run(key, Asked::Unblock, now)
    }

    /// Forgets a Limiter's limits on a key, and the block.
    pub fn reset(&self, key: String, limits: &LimitSet, now: f64) -> Promise {
        self.run(key, Asked::Reset(limits.0.clone()), now)
    }

    /// Runs an operation on an id.
    pub fn message(&self, key: String, op: &MessageCall, now: f64) -> Promise {
        self.run(key, Asked::Message(op.0.clone()), now)
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
        self.run(key, Asked::Observe(policy.0, whole(weight), nonce), now)
    }

    fn run(&self, key: String, asked: Asked, now: f64) -> Promise {
        let cas = JsCas::new(self.0.clone().unchecked_into(), timestamp(now));
        let (store, key) = (CasStore(cas), Key::joined(key));
        future_to_promise(async move {
            let calls = [Call { key: &key, op: asked.op() }];
            let answer = store.apply(&calls).await.pop();
            answer.unwrap_or(Err(Error::Corrupt)).map(reply_told).map_err(fault)
        })
    }
}

/// An operation that owns all it needs, so that freeing the objects it was made from while it runs is harmless.
enum Asked {
    Consume(Limits, u64),
    Peek(Limits, u64),
    Refund(Limits, u64),
    Block(Millis),
    Unblock,
    Reset(Limits),
    Message(MessageOp),
    Observe(BurstPolicy, u64, Option<Tag>),
}

impl Asked {
    const fn op(&self) -> Op<'_> {
        match self {
            Self::Consume(limits, cost) => Op::Consume { limits, cost: *cost },
            Self::Peek(limits, cost) => Op::Peek { limits, cost: *cost },
            Self::Refund(limits, cost) => Op::Refund { limits, cost: *cost },
            Self::Block(duration) => Op::Block { duration: *duration },
            Self::Unblock => Op::Unblock,
            Self::Reset(limits) => Op::Reset { limits },
            Self::Message(op) => Op::Message(op),
            Self::Observe(policy, weight, nonce) => {
                Op::Observe { policy, weight: *weight, nonce: nonce.as_ref() }
            }
        }
    }
}

fn reply_told(reply: Reply) -> JsValue {
    match reply {
        Reply::Decision(decision) => {
            let [decided_by, limit, remaining, retry_after, reset_after] = told(&decision);
            let reason = f64::from(decision.reason as u8);
            let numbers = [reason, decided_by, limit, remaining, retry_after, reset_after];
            Float64Array::from(numbers.as_slice()).into()
        }
        Reply::Message(reply) => message_told(reply),
        Reply::Observation(observation) => observation_told(&observation),
        _ => JsValue::UNDEFINED,
    }
}

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
