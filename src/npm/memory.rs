//! The tables of a MemoryStore.
//!
//! What takes and answers numbers alone is exported as it is: the adapter around a method, which copies its
//! arguments, counts references and borrows, takes longer than a decision. A class stays for the rest.

use std::cell::RefCell;

use wasm_bindgen::prelude::*;

use super::messages::{MessageCall, numbered};
use super::policies::{BurstSet, LimitSet};
use super::replies::{message_told, observation_told, share_told, told};
use super::tier::TierAsk;
use super::{NONE, held};
use crate::dedup::{MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::host::{fault, millis, timestamp, whole};
use crate::limit::Decision;
use crate::store::{Full, LimiterId, MemoryTable, OnFull, Slot};

/// Answered as a signed number: no slot, a stale slot, or no table.
const NOTHING: i32 = -1;
/// There is no room for a new key.
const FULL: i32 = -2;

/// The tables of one store, and the block of numbers in which they tell what one number does not hold.
struct Tables {
    table: MemoryTable,
    out: Box<[f64; 8]>,
}

/// The tables of every store.
struct Stores(RefCell<Vec<Option<Box<Tables>>>>);

/// SAFETY: the module has no shared memory and so only ever one thread. (A thread-local value would be the same, by
/// way of a function that is not inlined.)
#[cfg(not(target_feature = "atomics"))]
unsafe impl Sync for Stores {}

static STORES: Stores = Stores(RefCell::new(Vec::new()));

/// Runs on the tables of that number; `None` once they were given back.
#[inline(always)]
fn on<T>(store: u32, run: impl FnOnce(&mut Tables) -> T) -> Option<T> {
    let mut stores = STORES.0.try_borrow_mut().ok()?;
    Some(run(stores.get_mut(store as usize)?.as_mut()?))
}

const fn code(number: u32) -> i32 {
    number.cast_signed()
}

/// The reason alone; NOTHING when the slot is stale.
#[unsafe(no_mangle)]
extern "C" fn try_consume(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let (cost, now) = (whole(cost), timestamp(now));
    let slot = Slot { index, generation };
    let run = |tables: &mut Tables| tables.table.try_consume(LimiterId(limiter), slot, cost, now);
    on(store, run).flatten().map_or(NOTHING, |reason| reason as i32)
}

/// The reason, with the decision in the block; NOTHING when the slot is stale.
#[unsafe(no_mangle)]
extern "C" fn consume(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let (cost, now) = (whole(cost), timestamp(now));
    let slot = Slot { index, generation };
    let run = |tables: &mut Tables| {
        let decision = tables.table.consume(LimiterId(limiter), slot, cost, now)?;
        Some(tables.tell(&decision))
    };
    on(store, run).flatten().unwrap_or(NOTHING)
}

/// As `consume`, for a key without a slot; the block then holds the slot that it was given.
#[unsafe(no_mangle)]
extern "C" fn consume_new(store: u32, limiter: u32, cost: f64, now: f64) -> i32 {
    let run = |tables: &mut Tables| {
        let (decision, slot) =
            tables.table.consume_new(LimiterId(limiter), whole(cost), timestamp(now));
        tables.tell_slot(slot);
        tables.tell(&decision)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// As `consume`, changing nothing; the slot may be NONE.
#[unsafe(no_mangle)]
extern "C" fn peek(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let slot = held(index, generation);
    let run = |tables: &mut Tables| {
        let decision = tables.table.peek(LimiterId(limiter), slot, whole(cost), timestamp(now));
        tables.tell(&decision)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// Gives units back.
#[unsafe(no_mangle)]
extern "C" fn refund(store: u32, limiter: u32, index: u32, generation: u32, cost: f64, now: f64) {
    let slot = Slot { index, generation };
    on(store, |tables| {
        tables.table.refund(LimiterId(limiter), slot, whole(cost), timestamp(now));
    });
}

/// Blocks a key; the slot may be NONE, and the block then holds the one that it was given. FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn block(store: u32, index: u32, generation: u32, duration_ms: f64, now: f64) -> i32 {
    let slot = held(index, generation);
    let run = |tables: &mut Tables| {
        let Ok(slot) = tables.table.block(slot, millis(duration_ms), timestamp(now)) else {
            return FULL;
        };
        tables.tell_slot(Some(slot));
        0
    };
    on(store, run).unwrap_or(NOTHING)
}

/// Ends a block.
#[unsafe(no_mangle)]
extern "C" fn unblock(store: u32, index: u32, generation: u32) {
    on(store, |tables| tables.table.unblock(Slot { index, generation }));
}

/// Forgets a Limiter's limits on a key, and the block.
#[unsafe(no_mangle)]
extern "C" fn reset(store: u32, limiter: u32, index: u32, generation: u32) {
    on(store, |tables| tables.table.reset(LimiterId(limiter), Slot { index, generation }));
}

/// Whether this caller is the first with the id, 1 or 0; the block holds the id's slot. FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn first(store: u32, index: u32, generation: u32, ttl_ms: f64, now: f64) -> i32 {
    let op = MessageOp::First { ttl: millis(ttl_ms) };
    message(store, index, generation, &op, &MessageReply::Flag(true), now)
}

/// Takes an id under a numbered token: 1, or 0 when it is taken or done; the block holds the id's slot.
/// FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn claim(
    store: u32,
    index: u32,
    generation: u32,
    token: f64,
    lease_ms: f64,
    now: f64,
) -> i32 {
    let op = MessageOp::Claim { token: numbered(token), lease: millis(lease_ms), payload: None };
    message(store, index, generation, &op, &MessageReply::Fresh, now)
}

/// Runs an operation on an id; 1 when it answers what was hoped for.
fn message(
    store: u32,
    index: u32,
    generation: u32,
    op: &MessageOp,
    hoped: &MessageReply,
    now: f64,
) -> i32 {
    let run = |tables: &mut Tables| {
        let answer = tables.table.message(held(index, generation), op, timestamp(now));
        let Ok((reply, slot)) = answer else { return FULL };
        tables.tell_slot(slot);
        i32::from(reply == *hoped)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// The generation of the limit's row at a slot.
#[unsafe(no_mangle)]
extern "C" fn generation(store: u32, index: u32) -> i32 {
    code(on(store, |tables| tables.table.limit_generation(index)).flatten().unwrap_or(0))
}

/// A limit's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_limit(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_limit()).flatten().map_or(NOTHING, code)
}

/// An id's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_message(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_message()).flatten().map_or(NOTHING, code)
}

/// An identity's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_burst(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_burst()).flatten().map_or(NOTHING, code)
}

/// Keys in use.
#[unsafe(no_mangle)]
extern "C" fn size(store: u32) -> i32 {
    code(on(store, |tables| tables.table.len()).unwrap_or(0))
}

/// Lets go of a Limiter's limits.
#[unsafe(no_mangle)]
extern "C" fn unregister(store: u32, limiter: u32) {
    on(store, |tables| tables.table.unregister(LimiterId(limiter)));
}

/// The tables of a MemoryStore, by the number under which the functions above find them.
#[wasm_bindgen]
pub struct Memory(u32);

#[wasm_bindgen]
impl Memory {
    /// Tables of `most_keys` keys each.
    #[wasm_bindgen(constructor)]
    pub fn new(most_keys: u32, most_result_bytes: f64, share: bool) -> Memory {
        let on_full = if share { OnFull::Share } else { OnFull::Deny };
        let bytes = usize::try_from(whole(most_result_bytes)).unwrap_or(usize::MAX);
        let table = MemoryTable::new(most_keys, bytes, on_full);
        let tables = Some(Box::new(Tables { table, out: Box::new([0.0; 8]) }));
        let mut stores = STORES.0.borrow_mut();
        let vacant = stores.iter().position(Option::is_none);
        let number = vacant.unwrap_or(stores.len());
        match stores.get_mut(number) {
            Some(place) => *place = tables,
            None => stores.push(tables),
        }
        Memory(u32::try_from(number).unwrap_or(NONE))
    }

    /// The number of these tables.
    pub fn number(&self) -> u32 {
        self.0
    }

    /// Where the block of numbers is.
    pub fn out(&self) -> usize {
        self.on(|tables| tables.out.as_ptr().addr()).unwrap_or(0)
    }

    /// Makes a Limiter's limits known.
    pub fn register(&self, limits: &LimitSet) -> u32 {
        self.on(|tables| tables.table.register(limits.0.clone()).0).unwrap_or(NONE)
    }

    /// Answers a tier's question; the block holds the key's slot.
    pub fn ask(
        &self,
        limiter: u32,
        index: u32,
        generation: u32,
        ask: &TierAsk,
        now: f64,
    ) -> Option<Vec<f64>> {
        let slot = held(index, generation);
        self.on(|tables| {
            let (share, slot) =
                tables.table.tier(LimiterId(limiter), slot, &ask.0.question, timestamp(now));
            tables.tell_slot(slot);
            share.map(|share| share_told(&share))
        })
        .flatten()
    }

    /// The work under a numbered token is done: 1, or 0 when the claim was lost; NONE, and nothing done, when the
    /// slot is no longer the id's.
    pub fn commit(
        &self,
        index: u32,
        generation: u32,
        token: f64,
        ttl_ms: f64,
        result: Option<String>,
        now: f64,
    ) -> Result<u32, JsValue> {
        let slot = Slot { index, generation };
        let (token, ttl, result) = (numbered(token), millis(ttl_ms), result.map(Into::into));
        let op = MessageOp::Commit { token, ttl, result, payload: None };
        let run = |tables: &mut Tables| {
            if !tables.table.holds_message(slot) {
                return Ok(NONE);
            }
            let (reply, _) = tables.table.message(Some(slot), &op, timestamp(now))?;
            Ok((reply == MessageReply::Flag(true)).into())
        };
        self.on(run).unwrap_or(Ok(NONE)).map_err(thrown)
    }

    /// Runs an operation on an id; the block holds the id's slot.
    pub fn message(
        &self,
        index: u32,
        generation: u32,
        op: &MessageCall,
        now: f64,
    ) -> Result<JsValue, JsValue> {
        let run = |tables: &mut Tables| {
            let slot = held(index, generation);
            let (reply, slot) = tables.table.message(slot, &op.0, timestamp(now))?;
            tables.tell_slot(slot);
            Ok(reply)
        };
        self.on(run).map_or(Ok(JsValue::UNDEFINED), |told| told.map(message_told).map_err(thrown))
    }

    /// Counts an observation; the block holds the identity's slot.
    pub fn observe(
        &self,
        index: u32,
        generation: u32,
        policy: &BurstSet,
        weight: f64,
        nonce: Option<String>,
        now: f64,
    ) -> Result<JsValue, JsValue> {
        let nonce = nonce.map(|nonce| Tag::hash(nonce.as_bytes()));
        let run = |tables: &mut Tables| {
            let (slot, now) = (held(index, generation), timestamp(now));
            let (observation, slot) =
                tables.table.observe(slot, &policy.0, whole(weight), nonce.as_ref(), now)?;
            tables.tell_slot(slot);
            Ok(observation)
        };
        let told = |answer: Result<_, Full>| match answer {
            Ok(observation) => Ok(observation_told(&observation)),
            Err(error) => Err(thrown(error)),
        };
        self.on(run).map_or(Ok(JsValue::UNDEFINED), told)
    }

    fn on<T>(&self, run: impl FnOnce(&mut Tables) -> T) -> Option<T> {
        on(self.0, run)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(place) = STORES.0.borrow_mut().get_mut(self.0 as usize) {
            *place = None;
        }
    }
}

impl Tables {
    #[inline(always)]
    fn tell(&mut self, decision: &Decision) -> i32 {
        let [decided_by, limit, remaining, retry_after, reset_after, ..] = &mut *self.out;
        [*decided_by, *limit, *remaining, *retry_after, *reset_after] = told(decision);
        decision.reason as i32
    }

    fn tell_slot(&mut self, slot: Option<Slot>) {
        let [.., index, generation] = &mut *self.out;
        let slot = slot.unwrap_or(Slot { index: NONE, generation: NONE });
        (*index, *generation) = (f64::from(slot.index), f64::from(slot.generation));
    }
}

/// What FULL stands for.
#[wasm_bindgen]
pub fn full() -> JsValue {
    fault(Error::Full)
}

fn thrown(_: Full) -> JsValue {
    full()
}
