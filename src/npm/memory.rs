//! The tables of a MemoryStore.

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

    /// Answers a tier's question; the block holds the key's slot.
    pub fn ask(
        &mut self,
        limiter: u32,
        index: u32,
        generation: u32,
        ask: &TierAsk,
        now: f64,
    ) -> Option<Vec<f64>> {
        let slot = held(index, generation);
        let (share, slot) =
            self.table.tier(LimiterId(limiter), slot, &ask.0.question, timestamp(now));
        self.tell_slot(slot);
        share.map(|share| share_told(&share))
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

    /// Takes an id under a numbered token: false when it is taken or done; the block holds the id's slot.
    pub fn claim(
        &mut self,
        index: u32,
        generation: u32,
        token: f64,
        lease_ms: f64,
        now: f64,
    ) -> Result<bool, JsValue> {
        let (token, lease) = (numbered(token), millis(lease_ms));
        let op = MessageOp::Claim { token, lease, payload: None };
        let (reply, slot) =
            self.table.message(held(index, generation), &op, timestamp(now)).map_err(full)?;
        self.tell_slot(slot);
        Ok(reply == MessageReply::Fresh)
    }

    /// The work under a numbered token is done: 1, or 0 when the claim was lost; NONE, and nothing done, when the
    /// slot is no longer the id's.
    pub fn commit(
        &mut self,
        index: u32,
        generation: u32,
        token: f64,
        ttl_ms: f64,
        result: Option<String>,
        now: f64,
    ) -> Result<u32, JsValue> {
        let slot = Slot { index, generation };
        if !self.table.holds_message(slot) {
            return Ok(NONE);
        }
        let (token, ttl, result) = (numbered(token), millis(ttl_ms), result.map(Into::into));
        let op = MessageOp::Commit { token, ttl, result, payload: None };
        let (reply, _) = self.table.message(Some(slot), &op, timestamp(now)).map_err(full)?;
        Ok((reply == MessageReply::Flag(true)).into())
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

fn full(_: Full) -> JsValue {
    fault(Error::Full)
}
