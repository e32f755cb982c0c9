//! Process memory: the steps on tables of rows. Synchronous, bounded, without timers.
//!
//! [`MemoryTable`] addresses rows by slot and leaves finding a slot by key to whoever owns the index (in
//! npm sharded JavaScript Maps). [`MemoryStore`] is the table with an index of its own, for Rust hosts, and a
//! [`Limiter`] decides on keys of one prefix in it.

#[cfg(not(bare))]
mod index;
#[cfg(not(bare))]
mod limiter;
mod limits;
#[cfg(not(bare))]
mod store;

use super::records::Records;
use super::tier::Question;
use super::{Full, Slot};
use crate::burst::{self, Burst, BurstPolicy, Observation};
use crate::dedup::{self, Message, MessageOp, MessageReply, Tag};
use crate::limit::{Decision, Limits, Reason, Share};
use crate::time::{Clock, Millis, Timestamp};
#[cfg(not(bare))]
pub use limiter::Limiter;
use limits::LimitTable;
pub use limits::{LimiterId, OnFull};
#[cfg(not(bare))]
pub use store::MemoryStore;

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

    /// Answers a tier's question on a row, or on a key without one; answers its row, if it has one now. No share
    /// means that the question has none for an answer.
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
    #[inline]
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
