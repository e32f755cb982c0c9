//! Process memory: the steps on tables of rows. Synchronous, bounded, without timers.
//!
//! [`MemoryTable`] addresses rows by slot and leaves finding a slot by key to whoever owns the index (in
//! npm sharded JavaScript Maps). [`MemoryStore`] is the table with a hash map as its index, for Rust hosts.

mod limits;

use core::convert::Infallible;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::records::Records;
use super::tier::Question;
use super::{Answer, Call, Full, Key, Slot, Store};
use crate::burst::{self, Burst, BurstPolicy, Observation};
use crate::dedup::{self, Message, MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::limit::{Decision, Limits, Reason, Share};
use crate::op::{Op, Reply};
use crate::time::{Clock, Millis, Timestamp};
use limits::LimitTable;
pub use limits::{LimiterId, OnFull};

/// Tables for limits, ids and identities, each with room for as many keys.
pub struct MemoryTable {
    limits: LimitTable,
    messages: Records<Message>,
    bursts: Records<Burst>,
    result_bytes: usize,
    most_result_bytes: usize,
}

impl MemoryTable {
    /// Tables of `most_keys` keys each, and room for that many bytes of stored results; a result beyond
    /// it is remembered as done only.
    #[must_use]
    pub fn new(most_keys: u32, most_result_bytes: usize, on_full: OnFull) -> Self {
        Self {
            limits: LimitTable::new(most_keys, on_full),
            messages: Records::new(most_keys),
            bursts: Records::new(most_keys),
            result_bytes: 0,
            most_result_bytes,
        }
    }

    /// Keys in use.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.limits.len().saturating_add(self.messages.len()).saturating_add(self.bursts.len())
    }

    /// Whether no key is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes a Limiter's limits known to the table.
    pub fn register(&mut self, limits: Limits) -> LimiterId {
        self.limits.register(limits)
    }

    /// Lets go of a Limiter's limits. What its keys remember stays.
    pub fn unregister(&mut self, limiter: LimiterId) {
        self.limits.unregister(limiter);
    }

    /// Consumes on a row, and tells the reason alone; `None` when the slot is stale.
    #[inline(always)]
    pub fn try_consume(
        &mut self,
        limiter: LimiterId,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Reason> {
        self.limits.try_consume(limiter, slot, cost, now)
    }

    /// Consumes on a row; `None` when the slot is stale.
    #[inline(always)]
    pub fn consume(
        &mut self,
        limiter: LimiterId,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        self.limits.consume(limiter, slot, cost, now)
    }

    /// Consumes on a key that has no row, and gives it one when there is something to remember.
    pub fn consume_new(
        &mut self,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Slot>) {
        self.limits.consume_new(limiter, cost, now)
    }

    /// What consume would answer on a row, or on a key without one.
    #[must_use]
    pub fn peek(
        &mut self,
        limiter: LimiterId,
        slot: Option<Slot>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.limits.peek(limiter, slot, cost, now)
    }

    /// Runs [`Op::Reserve`], [`Op::Add`] or [`Op::GiveBack`] on a row, or on a key without one; answers its row,
    /// if it has one now. No share means that the operation answers none.
    pub fn tier(
        &mut self,
        limiter: LimiterId,
        slot: Option<Slot>,
        question: &Question,
        now: Timestamp,
    ) -> (Option<Share>, Option<Slot>) {
        self.limits.tier(limiter, slot, now, |record, limits| match *question {
            Question::Consume { cost } => record.reserve(limits, cost, 0, now, Clock::Store).0,
            Question::Reserve { cost, units } => {
                record.reserve(limits, cost, units, now, Clock::Store).0
            }
            Question::Add { delta, cost } => {
                record.add(limits, delta.as_ref(), cost, now, Clock::Store).0
            }
            Question::GiveBack { delta } => {
                record.give_back(limits, &delta, now, Clock::Store);
                None
            }
        })
    }

    /// Gives units back.
    pub fn refund(&mut self, limiter: LimiterId, slot: Slot, cost: u64, now: Timestamp) {
        self.limits.refund(limiter, slot, cost, now);
    }

    /// Blocks a key; answers its row.
    ///
    /// # Errors
    /// [`Full`] when the key has no row and there is no room for one.
    pub fn block(
        &mut self,
        slot: Option<Slot>,
        duration: Millis,
        now: Timestamp,
    ) -> Result<Slot, Full> {
        self.limits.block(slot, duration, now)
    }

    /// Ends a block.
    pub fn unblock(&mut self, slot: Slot) {
        self.limits.unblock(slot);
    }

    /// Forgets a Limiter's limits on a key, and the block.
    pub fn reset(&mut self, limiter: LimiterId, slot: Slot) {
        self.limits.reset(limiter, slot);
    }

    /// Runs an operation on an id; answers its row, if it has one now.
    ///
    /// # Errors
    /// [`Full`] when there is something new to remember and no room for it.
    pub fn message(
        &mut self,
        slot: Option<Slot>,
        op: &MessageOp,
        now: Timestamp,
    ) -> Result<(MessageReply, Option<Slot>), Full> {
        let mut record = slot.and_then(|slot| self.messages.get(slot)).cloned();
        let before = record.as_ref().map_or(0, Message::result_bytes);
        let (reply, changed) = dedup::step(&mut record, op, now);
        if !changed {
            return Ok((reply, slot));
        }
        // What a freed row held is counted off when it is told.
        let before = if record.is_some() { before } else { 0 };
        self.result_bytes = self.result_bytes.saturating_sub(before);
        if let Some(Message::Done { result, .. }) = &mut record {
            let bytes = result.as_ref().map_or(0, |result| result.len());
            let total = self.result_bytes.saturating_add(bytes);
            if total > self.most_result_bytes {
                *result = None;
            } else {
                self.result_bytes = total;
            }
        }
        let over_at = record.as_ref().map_or(now, Message::over_at);
        let bytes = record.as_ref().map_or(0, Message::result_bytes);
        let placed = self.messages.put(slot, record, over_at, now, Message::over_at);
        if placed.is_err() {
            self.result_bytes = self.result_bytes.saturating_sub(bytes);
        }
        Ok((reply, placed?))
    }

    /// Whether that slot is still an id's.
    #[must_use]
    pub fn holds_message(&self, slot: Slot) -> bool {
        self.messages.get(slot).is_some()
    }

    /// Counts an observation of an identity; answers its row.
    ///
    /// # Errors
    /// [`Full`] when the identity has no row and there is no room for one.
    pub fn observe(
        &mut self,
        slot: Option<Slot>,
        policy: &BurstPolicy,
        weight: u64,
        nonce: Option<&Tag>,
        now: Timestamp,
    ) -> Result<(Observation, Option<Slot>), Full> {
        let mut record = slot.and_then(|slot| self.bursts.get(slot)).cloned();
        let observation = burst::observe(&mut record, policy, weight, nonce, now, Clock::Store);
        let over_at = record.as_ref().map_or(now, Burst::over_at);
        let placed = self.bursts.put(slot, record, over_at, now, Burst::over_at)?;
        Ok((observation, placed))
    }

    /// The generation of the limit's row at an index.
    #[must_use]
    pub fn limit_generation(&self, index: u32) -> Option<u32> {
        self.limits.generation(index)
    }

    /// A limit's slot freed since last asked: the index has to forget it.
    pub fn freed_limit(&mut self) -> Option<u32> {
        self.limits.take_freed()
    }

    /// An id's slot freed since last asked.
    pub fn freed_message(&mut self) -> Option<u32> {
        let (slot, message) = self.messages.take_freed()?;
        let bytes = message.as_ref().map_or(0, Message::result_bytes);
        self.result_bytes = self.result_bytes.saturating_sub(bytes);
        Some(slot)
    }

    /// An identity's slot freed since last asked.
    pub fn freed_burst(&mut self) -> Option<u32> {
        self.bursts.take_freed().map(|(slot, _)| slot)
    }
}

/// The index of one table: keys to rows, and back.
#[derive(Default)]
struct Index {
    slots: HashMap<Key, Slot>,
    keys: HashMap<u32, Key>,
}

impl Index {
    fn get(&self, key: &Key) -> Option<Slot> {
        self.slots.get(key).copied()
    }

    fn set(&mut self, key: &Key, slot: Slot) {
        self.slots.insert(key.clone(), slot);
        self.keys.insert(slot.index, key.clone());
    }

    fn forget(&mut self, index: u32) {
        if let Some(key) = self.keys.remove(&index) {
            self.slots.remove(&key);
        }
    }
}

struct Indexed {
    table: MemoryTable,
    limits: Index,
    messages: Index,
    bursts: Index,
    limiters: Vec<(Limits, LimiterId)>,
}

/// The memory store for Rust hosts. The clock is the host's, as ever.
pub struct MemoryStore<C> {
    inner: Mutex<Indexed>,
    now: C,
}

impl<C: Fn() -> Timestamp> MemoryStore<C> {
    /// A store of `most_keys` keys of each kind, on the clock `now`.
    #[must_use]
    pub fn new(most_keys: u32, on_full: OnFull, now: C) -> Self {
        const MOST_RESULT_BYTES: usize = 256 << 20;
        let inner = Indexed {
            table: MemoryTable::new(most_keys, MOST_RESULT_BYTES, on_full),
            limits: Index::default(),
            messages: Index::default(),
            bursts: Index::default(),
            limiters: Vec::new(),
        };
        Self { inner: Mutex::new(inner), now }
    }

    /// Runs one call, now.
    ///
    /// # Errors
    /// [`Error::Full`] when a new key finds no room, [`Error::Unsupported`] for what is another store's.
    pub fn call(&self, call: &Call<'_>) -> Answer<Infallible> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = inner.run(call, (self.now)());
        inner.forget_freed();
        answer
    }
}

impl Indexed {
    fn run(&mut self, call: &Call<'_>, now: Timestamp) -> Answer<Infallible> {
        let key = call.key;
        match &call.op {
            Op::Consume { limits, cost } => {
                let limiter = self.limiter(limits);
                Ok(Reply::Decision(self.consume(key, limiter, *cost, now)))
            }
            Op::Peek { limits, cost } => {
                let limiter = self.limiter(limits);
                Ok(Reply::Decision(self.table.peek(limiter, self.limits.get(key), *cost, now)))
            }
            Op::Message(op) => {
                let slot = self.messages.get(key);
                let (reply, placed) = self.table.message(slot, op, now).map_err(|_| Error::Full)?;
                self.forget_freed();
                if let Some(slot) = placed {
                    self.messages.set(key, slot);
                }
                Ok(Reply::Message(reply))
            }
            Op::Observe { policy, weight, nonce } => {
                let slot = self.bursts.get(key);
                let answer = self.table.observe(slot, policy, *weight, *nonce, now);
                let (observation, placed) = answer.map_err(|_| Error::Full)?;
                self.forget_freed();
                if let Some(slot) = placed {
                    self.bursts.set(key, slot);
                }
                Ok(Reply::Observation(observation))
            }
            Op::Reserve { limits, cost, units } => {
                self.tier(key, limits, Question::Reserve { cost: *cost, units: *units }, now)
            }
            Op::Add { limits, delta, cost } => {
                self.tier(key, limits, Question::Add { delta: *delta, cost: *cost }, now)
            }
            Op::GiveBack { limits, delta } => {
                self.tier(key, limits, Question::GiveBack { delta: *delta }, now)
            }
            _ => self.change(call, now),
        }
    }

    fn tier(
        &mut self,
        key: &Key,
        limits: &Limits,
        question: Question,
        now: Timestamp,
    ) -> Answer<Infallible> {
        if limits.single().is_none() {
            return Err(Error::Unsupported("a tier decides on one limit"));
        }
        let limiter = self.limiter(limits);
        let (share, placed) = self.table.tier(limiter, self.limits.get(key), &question, now);
        self.forget_freed();
        if let Some(slot) = placed {
            self.limits.set(key, slot);
        }
        Ok(share.map_or(Reply::Done, Reply::Share))
    }

    /// The operations on a key's limits that answer nothing.
    fn change(&mut self, call: &Call<'_>, now: Timestamp) -> Answer<Infallible> {
        let slot = self.limits.get(call.key);
        match (&call.op, slot) {
            (Op::Block { duration }, _) => {
                let slot = self.table.block(slot, *duration, now).map_err(|_| Error::Full)?;
                self.forget_freed();
                self.limits.set(call.key, slot);
            }
            (Op::Refund { limits, cost }, Some(slot)) => {
                let limiter = self.limiter(limits);
                self.table.refund(limiter, slot, *cost, now);
            }
            (Op::Reset { limits }, Some(slot)) => {
                let limiter = self.limiter(limits);
                self.table.reset(limiter, slot);
            }
            (Op::Unblock, Some(slot)) => self.table.unblock(slot),
            (Op::Refund { .. } | Op::Reset { .. } | Op::Unblock, None) => {}
            _ => {
                return Err(Error::Unsupported("this operation is not one of the memory store's"));
            }
        }
        Ok(Reply::Done)
    }

    fn consume(&mut self, key: &Key, limiter: LimiterId, cost: u64, now: Timestamp) -> Decision {
        if let Some(slot) = self.limits.get(key)
            && let Some(decision) = self.table.consume(limiter, slot, cost, now)
        {
            return decision;
        }
        let (decision, placed) = self.table.consume_new(limiter, cost, now);
        self.forget_freed();
        if let Some(slot) = placed {
            self.limits.set(key, slot);
        }
        decision
    }

    fn limiter(&mut self, limits: &Limits) -> LimiterId {
        if let Some((_, limiter)) = self.limiters.iter().find(|(known, _)| known == limits) {
            return *limiter;
        }
        let limiter = self.table.register(limits.clone());
        self.limiters.push((limits.clone(), limiter));
        limiter
    }

    fn forget_freed(&mut self) {
        while let Some(slot) = self.table.freed_limit() {
            self.limits.forget(slot);
        }
        while let Some(slot) = self.table.freed_message() {
            self.messages.forget(slot);
        }
        while let Some(slot) = self.table.freed_burst() {
            self.bursts.forget(slot);
        }
    }
}

impl<C: Fn() -> Timestamp> Store for MemoryStore<C> {
    type Error = Infallible;

    async fn apply(&self, calls: &[Call<'_>]) -> Vec<Answer<Infallible>> {
        calls.iter().map(|call| self.call(call)).collect()
    }
}
