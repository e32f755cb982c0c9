//! The memory store for Rust hosts: the tables behind a lock, with an index each.

use core::convert::Infallible;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::index::{Index, RandomState, Seed, Sought};
use super::{LimiterId, MemoryTable, OnFull};
use crate::error::Error;
use crate::limit::{Decision, Limits, Reason};
use crate::op::{Op, Reply};
use crate::store::tier::Question;
use crate::store::{Answer, Call, Slot, Store};
use crate::time::Timestamp;

/// The memory store for Rust hosts. The clock is the host's, as ever; one that never steps back is best.
///
/// It runs every operation on any key. Who decides on many keys under the same limits has a
/// [`Limiter`](super::Limiter) for them.
pub struct MemoryStore<C> {
    inner: Mutex<Indexed>,
    seed: Seed,
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
            limiters: HashMap::default(),
        };
        Self { inner: Mutex::new(inner), seed: Seed::default(), now }
    }

    /// Runs one call, now.
    ///
    /// # Errors
    /// [`Error::Full`] when a new key finds no room, [`Error::Unsupported`] for what is another store's.
    pub fn call(&self, call: &Call<'_>) -> Answer<Infallible> {
        let key = self.seed.sought(call.key);
        self.locked(|inner, now| {
            let answer = inner.run(&key, &call.op, now);
            inner.forget_freed();
            answer
        })
    }

    pub(super) const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Runs a step. The clock is read behind the lock: two callers' times are in the order of their steps.
    #[inline]
    pub(super) fn locked<T>(&self, step: impl FnOnce(&mut Indexed, Timestamp) -> T) -> T {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.now)();
        step(&mut inner, now)
    }
}

pub(super) struct Indexed {
    table: MemoryTable,
    limits: Index,
    messages: Index,
    bursts: Index,
    limiters: HashMap<Limits, LimiterId, RandomState>,
}

impl Indexed {
    fn run(&mut self, key: &Sought<'_>, op: &Op<'_>, now: Timestamp) -> Answer<Infallible> {
        match op {
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
            _ => self.change(key, op, now),
        }
    }

    fn tier(
        &mut self,
        key: &Sought<'_>,
        limits: &Limits,
        question: Question,
        now: Timestamp,
    ) -> Answer<Infallible> {
        if limits.single().is_none() {
            return Err(Error::Unsupported("a tier decides on one limit"));
        }
        let limiter = self.limiter(limits);
        let (share, placed) = self.table.tier(limiter, self.limits.get(key), &question, now);
        self.placed(key, placed);
        Ok(share.map_or(Reply::Done, Reply::Share))
    }

    /// The operations on a key's limits that answer nothing.
    fn change(&mut self, key: &Sought<'_>, op: &Op<'_>, now: Timestamp) -> Answer<Infallible> {
        let slot = self.limits.get(key);
        match (op, slot) {
            (Op::Block { duration }, _) => {
                let slot = self.table.block(slot, *duration, now).map_err(|_| Error::Full)?;
                self.placed(key, Some(slot));
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

    #[inline]
    pub(super) fn consume(
        &mut self,
        key: &Sought<'_>,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        if let Some(slot) = self.limits.get(key)
            && let Some(decision) = self.table.consume(limiter, slot, cost, now)
        {
            return decision;
        }
        self.consume_new(key, limiter, cost, now)
    }

    #[inline]
    pub(super) fn try_consume(
        &mut self,
        key: &Sought<'_>,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> Reason {
        if let Some(slot) = self.limits.get(key)
            && let Some(reason) = self.table.try_consume(limiter, slot, cost, now)
        {
            return reason;
        }
        self.consume_new(key, limiter, cost, now).reason
    }

    #[cold]
    fn consume_new(
        &mut self,
        key: &Sought<'_>,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let (decision, placed) = self.table.consume_new(limiter, cost, now);
        self.placed(key, placed);
        decision
    }

    /// Notes where a key is. Rows that were freed are forgotten first: it may be in the place of one. Until then nobody is
    /// misled, for a key whose row is freed finds nothing there.
    fn placed(&mut self, key: &Sought<'_>, placed: Option<Slot>) {
        self.forget_limits();
        if let Some(slot) = placed {
            self.limits.set(key, slot);
        }
    }

    pub(super) fn limiter(&mut self, limits: &Limits) -> LimiterId {
        if let Some(limiter) = self.limiters.get(limits) {
            return *limiter;
        }
        let limiter = self.table.register(limits.clone());
        self.limiters.insert(limits.clone(), limiter);
        limiter
    }

    #[inline]
    fn forget_limits(&mut self) {
        while let Some(slot) = self.table.freed_limit() {
            self.limits.forget(slot);
        }
    }

    fn forget_freed(&mut self) {
        self.forget_limits();
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
