//! The table of limits. A key with one limit and no block, which is nearly every key, is a row of 32
//! bytes; any other has its record beside the table. Both run the same arithmetic.

use super::{Full, Slot};
use crate::limit::{Decision, Entry, Limit, LimitRecord, Limits, Reason, Share, State};
use crate::store::slots::{Row, Slots};
use crate::time::{Clock, Millis, Timestamp};

/// One clock decides for everyone in the process.
const CLOCK: Clock = Clock::Store;
/// In place of a policy: the row's record is beside the table, at the number in `state.level`.
const BESIDE: u32 = u32::MAX;

/// Which registered Limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimiterId(pub u32);

/// What a new key is told when every key is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// Denied until the next key is whole.
    Deny,
    /// All new keys share one budget of the limit.
    Share,
}

struct LimitRow {
    state: State,
    policy: u32,
    generation: u32,
}

impl Row for LimitRow {
    fn vacant(generation: u32, next_free: u32) -> Self {
        let state = State { level: u64::from(next_free), ..State::default() };
        Self { state, policy: BESIDE, generation }
    }

    #[inline(always)]
    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn next_free(&self) -> u32 {
        narrow(self.state.level)
    }
}

/// A denial that tells nothing: what a Limiter that is not registered gets.
const NOTHING: Decision = Decision {
    reason: Reason::Limited,
    decided_by: 0,
    limit: 0,
    remaining: 0,
    retry_after: Some(Millis::ZERO),
    reset_after: Millis::ZERO,
};

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// When a row is over; one that holds nothing is over now.
fn ends<'a>(
    policies: &'a [Policy],
    beside: &'a [Option<LimitRecord>],
    now: Timestamp,
) -> impl Fn(&LimitRow) -> Timestamp + 'a {
    move |row| match row.policy {
        BESIDE => match beside.get(narrow(row.state.level) as usize) {
            Some(Some(record)) => record.whole_at(),
            _ => now,
        },
        policy => policies
            .get(policy as usize)
            .map_or(now, |policy| policy.limit.shape().whole_at(row.state)),
    }
}

/// A limit that rows are in the arithmetic of, and how many rows and Limiters need it.
struct Policy {
    limit: Limit,
    users: u32,
}

struct Registered {
    limits: Limits,
    /// The policy of the only limit, where there is only one.
    single: Option<u32>,
    /// What new keys share when the table is full.
    shared: LimitRecord,
}

pub(super) struct LimitTable {
    rows: Slots<LimitRow>,
    policies: Vec<Policy>,
    beside: Vec<Option<LimitRecord>>,
    beside_free: Vec<u32>,
    limiters: Vec<Option<Registered>>,
    on_full: OnFull,
}

impl LimitTable {
    pub(super) fn new(most_rows: u32, on_full: OnFull) -> Self {
        Self {
            rows: Slots::new(most_rows),
            policies: Vec::new(),
            beside: Vec::new(),
            beside_free: Vec::new(),
            limiters: Vec::new(),
            on_full,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.rows.len()
    }

    pub(super) fn register(&mut self, limits: Limits) -> LimiterId {
        let single = limits.single().cloned().map(|limit| self.use_policy(&limit));
        let registered = Some(Registered { limits, single, shared: LimitRecord::default() });
        let vacant = self.limiters.iter().position(Option::is_none);
        let id = vacant.unwrap_or(self.limiters.len());
        match self.limiters.get_mut(id) {
            Some(place) => *place = registered,
            None => self.limiters.push(registered),
        }
        LimiterId(u32::try_from(id).unwrap_or(u32::MAX))
    }

    pub(super) fn unregister(&mut self, limiter: LimiterId) {
        let registered = self.limiters.get_mut(limiter.0 as usize).and_then(Option::take);
        if let Some(policy) = registered.and_then(|registered| registered.single) {
            self.leave_policy(policy);
        }
    }

    #[inline(always)]
    pub(super) fn try_consume(
        &mut self,
        limiter: LimiterId,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Reason> {
        if let Some((limit, row)) = self.plain(limiter, slot) {
            let (_, admitted) = limit.shape().charge_state(&mut row.state, cost, now, CLOCK);
            return Some(match admitted {
                true => Reason::Ok,
                false if cost > limit.capacity() => Reason::Never,
                false => Reason::Limited,
            });
        }
        self.consume(limiter, slot, cost, now).map(|decision| decision.reason)
    }

    #[inline]
    pub(super) fn consume(
        &mut self,
        limiter: LimiterId,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        if let Some((limit, row)) = self.plain(limiter, slot) {
            return Some(limit.consume(&mut row.state, cost, now, CLOCK));
        }
        self.consume_beside(limiter, slot, cost, now)
    }

    fn consume_beside(
        &mut self,
        limiter: LimiterId,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        self.held(slot)?;
        let limits = self.limits(limiter)?.clone();
        self.change(slot, now, |record| record.consume(&limits, cost, now, CLOCK).0)
    }

    /// The row as a plain one of this Limiter: one limit, under the Limiter's own policy.
    #[inline(always)]
    fn plain(&mut self, limiter: LimiterId, slot: Slot) -> Option<(&Limit, &mut LimitRow)> {
        let policy = self.limiters.get(limiter.0 as usize)?.as_ref()?.single?;
        let row = self.rows.get_mut(slot.index)?;
        if row.policy != policy || !slot.holds(row.generation) {
            return None;
        }
        Some((&self.policies.get(policy as usize)?.limit, row))
    }

    pub(super) fn consume_new(
        &mut self,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Slot>) {
        if let Some(answer) = self.consume_new_plain(limiter, cost, now) {
            return answer;
        }
        let Some(limits) = self.limits(limiter).cloned() else {
            return (NOTHING, None);
        };
        let mut record = LimitRecord::default();
        let (decision, changed) = record.consume(&limits, cost, now, CLOCK);
        if !changed {
            return (decision, None);
        }
        match self.insert(&record, now) {
            Ok(slot) => (decision, Some(slot)),
            Err(full) => {
                let decide = |shared: &mut LimitRecord, limits: &Limits| {
                    shared.consume(limits, cost, now, CLOCK).0
                };
                (self.overflow(limiter, now, full, decide), None)
            }
        }
    }

    /// As `consume_new`, without making a record of a single limit; `None` when there are more, or no room.
    fn consume_new_plain(
        &mut self,
        limiter: LimiterId,
        cost: u64,
        now: Timestamp,
    ) -> Option<(Decision, Option<Slot>)> {
        let at = self.limiters.get(limiter.0 as usize)?.as_ref()?.single?;
        let policy = self.policies.get_mut(at as usize)?;
        let mut state = State::default();
        let decision = policy.limit.consume(&mut state, cost, now, CLOCK);
        if decision.reset_after == Millis::ZERO {
            return Some((decision, None));
        }
        policy.users = policy.users.saturating_add(1);
        let over_at = policy.limit.shape().whole_at(state);
        let slot = self.insert_row(state, at, over_at, now).ok()?;
        Some((decision, Some(slot)))
    }

    /// What a new key is told when there is no room for it.
    fn overflow(
        &mut self,
        limiter: LimiterId,
        now: Timestamp,
        full: Full,
        decide: impl FnOnce(&mut LimitRecord, &Limits) -> Decision,
    ) -> Decision {
        let Some(Some(Registered { limits, shared, .. })) =
            self.limiters.get_mut(limiter.0 as usize)
        else {
            return NOTHING;
        };
        if self.on_full == OnFull::Share {
            return decide(shared, limits);
        }
        let wait = full.until.since(now).max(Millis::from_ms(1));
        Decision {
            limit: limits.first().map_or(0, Limit::capacity),
            retry_after: Some(wait),
            reset_after: wait,
            ..NOTHING
        }
    }

    pub(super) fn peek(
        &mut self,
        limiter: LimiterId,
        slot: Option<Slot>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let known = slot.and_then(|slot| self.record(slot));
        let new = known.is_none();
        let record = known.unwrap_or_default();
        let decision =
            self.limits(limiter).map_or(NOTHING, |limits| record.peek(limits, cost, now, CLOCK));
        if !(new && decision.allowed()) {
            return decision;
        }
        match self.room(now) {
            Ok(()) => decision,
            Err(full) => self.overflow(limiter, now, full, |shared, limits| {
                shared.peek(limits, cost, now, CLOCK)
            }),
        }
    }

    pub(super) fn refund(&mut self, limiter: LimiterId, slot: Slot, cost: u64, now: Timestamp) {
        let Some(limits) = self.limits(limiter).cloned() else {
            return;
        };
        self.change(slot, now, |record| record.refund(&limits, cost, now, CLOCK));
    }

    pub(super) fn block(
        &mut self,
        slot: Option<Slot>,
        duration: Millis,
        now: Timestamp,
    ) -> Result<Slot, Full> {
        if let Some(slot) = slot.filter(|slot| self.held(*slot).is_some()) {
            self.change(slot, now, |record| record.block(duration, now, CLOCK));
            return Ok(slot);
        }
        let mut record = LimitRecord::default();
        record.block(duration, now, CLOCK);
        self.insert(&record, now)
    }

    pub(super) fn unblock(&mut self, slot: Slot) {
        self.change(slot, Timestamp::default(), LimitRecord::unblock);
    }

    pub(super) fn reset(&mut self, limiter: LimiterId, slot: Slot) {
        let Some(limits) = self.limits(limiter).cloned() else {
            return;
        };
        self.change(slot, Timestamp::default(), |record| record.reset(&limits));
    }

    /// Runs an operation of a tier; answers the key's row, if it has one now.
    pub(super) fn tier(
        &mut self,
        limiter: LimiterId,
        slot: Option<Slot>,
        now: Timestamp,
        step: impl Fn(&mut LimitRecord, &Limits) -> Option<Share>,
    ) -> (Option<Share>, Option<Slot>) {
        let Some(limits) = self.limits(limiter).cloned() else {
            return (None, None);
        };
        if let Some(slot) = slot.filter(|slot| self.held(*slot).is_some()) {
            return (self.change(slot, now, |record| step(record, &limits)).flatten(), Some(slot));
        }
        let mut record = LimitRecord::default();
        let share = step(&mut record, &limits);
        if record == LimitRecord::default() {
            return (share, None);
        }
        match self.insert(&record, now) {
            Ok(slot) => (share, Some(slot)),
            Err(full) => {
                let decision = self.overflow(limiter, now, full, |shared, limits| {
                    shared.consume(limits, 0, now, CLOCK).0
                });
                // Nobody's to spend: the key has no row.
                let nothing =
                    |share| Share { decision, granted: 0, holds_for: Millis::ZERO, ..share };
                (share.map(nothing), None)
            }
        }
    }

    pub(super) fn generation(&self, index: u32) -> Option<u32> {
        self.rows.get(index).map(Row::generation)
    }

    pub(super) fn take_freed(&mut self) -> Option<u32> {
        let (slot, row) = self.rows.take_freed()?;
        self.let_go(&row);
        Some(slot)
    }

    fn limits(&self, limiter: LimiterId) -> Option<&Limits> {
        self.limiters.get(limiter.0 as usize)?.as_ref().map(|registered| &registered.limits)
    }

    fn held(&self, slot: Slot) -> Option<&LimitRow> {
        self.rows.get(slot.index).filter(|row| slot.holds(row.generation))
    }

    fn record(&self, slot: Slot) -> Option<LimitRecord> {
        let row = self.held(slot)?;
        if row.policy == BESIDE {
            return self.beside.get(narrow(row.state.level) as usize)?.clone();
        }
        let limit = &self.policies.get(row.policy as usize)?.limit;
        let entry = Entry { name: limit.name().clone(), shape: *limit.shape(), state: row.state };
        Some(LimitRecord { entries: vec![entry], ..LimitRecord::default() })
    }

    /// Runs a change on the record of a row, and puts it back in its smallest form; a whole one goes.
    fn change<T>(
        &mut self,
        slot: Slot,
        now: Timestamp,
        change: impl FnOnce(&mut LimitRecord) -> T,
    ) -> Option<T> {
        let mut record = self.record(slot)?;
        let before = record.clone();
        let answer = change(&mut record);
        if record == before {
            return Some(answer);
        }
        if record == LimitRecord::default() {
            self.rows.remove(slot.index);
            return Some(answer);
        }
        let over_at = record.whole_at().max(now);
        let (state, policy) = self.place(record);
        let row = self.rows.get_mut(slot.index)?;
        let generation = row.generation;
        let old = core::mem::replace(row, LimitRow { state, policy, generation });
        self.let_go(&old);
        self.rows.hasten(slot.index, over_at);
        Some(answer)
    }

    fn insert(&mut self, record: &LimitRecord, now: Timestamp) -> Result<Slot, Full> {
        let (state, policy) = self.place(record.clone());
        self.insert_row(state, policy, record.whole_at(), now)
    }

    /// Inserts a row, or gives back what it holds outside itself.
    fn insert_row(
        &mut self,
        state: State,
        policy: u32,
        over_at: Timestamp,
        now: Timestamp,
    ) -> Result<Slot, Full> {
        let row = LimitRow { state, policy, generation: 0 };
        let ends = ends(&self.policies, &self.beside, now);
        match self.rows.insert(row, over_at, now, ends) {
            Ok(index) => {
                let generation = self.rows.get(index).map_or(0, Row::generation);
                Ok(Slot { index, generation })
            }
            Err(full) => {
                self.let_go(&LimitRow { state, policy, generation: 0 });
                Err(full)
            }
        }
    }

    /// Makes room for a new key, if there is none.
    fn room(&mut self, now: Timestamp) -> Result<(), Full> {
        let ends = ends(&self.policies, &self.beside, now);
        self.rows.room(now, &ends)
    }

    /// The smallest form of a record: a row of its own, or a place beside the table.
    fn place(&mut self, record: LimitRecord) -> (State, u32) {
        if let (None, None, [entry]) = (record.block, &record.adders, record.entries.as_slice()) {
            let limit = Limit::restored(entry.name.clone(), entry.shape);
            return (entry.state, self.use_policy(&limit));
        }
        let at = match self.beside_free.pop() {
            Some(at) => at,
            None => {
                self.beside.push(None);
                u32::try_from(self.beside.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = self.beside.get_mut(at as usize) {
            *place = Some(record);
        }
        (State { level: u64::from(at), ..State::default() }, BESIDE)
    }

    /// Gives back what a row held outside itself.
    fn let_go(&mut self, row: &LimitRow) {
        if row.policy != BESIDE {
            return self.leave_policy(row.policy);
        }
        let at = narrow(row.state.level);
        if let Some(place) = self.beside.get_mut(at as usize) {
            *place = None;
            self.beside_free.push(at);
        }
    }

    fn use_policy(&mut self, limit: &Limit) -> u32 {
        let known = self.policies.iter().position(|policy| policy.limit == *limit);
        let unused = || self.policies.iter().position(|policy| policy.users == 0);
        let at = known.or_else(unused).unwrap_or(self.policies.len());
        match self.policies.get_mut(at) {
            Some(policy) => {
                policy.users = policy.users.saturating_add(1);
                if known.is_none() {
                    policy.limit = limit.clone();
                }
            }
            None => self.policies.push(Policy { limit: limit.clone(), users: 1 }),
        }
        u32::try_from(at).unwrap_or(BESIDE.saturating_sub(1))
    }

    fn leave_policy(&mut self, policy: u32) {
        if let Some(policy) = self.policies.get_mut(policy as usize) {
            policy.users = policy.users.saturating_sub(1);
        }
    }
}
