//! The table with a hash map as its index, for Rust hosts.

use core::convert::Infallible;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{LimiterId, MemoryTable, OnFull};
use crate::error::Error;
use crate::limit::{Decision, Limits};
use crate::op::{Op, Reply};
use crate::store::tier::Question;
use crate::store::{Answer, Call, Key, Slot, Store};
use crate::time::Timestamp;

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
