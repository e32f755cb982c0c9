//! The record of one key: every limit's state by name, and the block. A decision over several limits
//! is a step on this one value, and so all-or-nothing on every store.

use super::share::{Adders, Delta, SHARES, Share};
use super::{Decision, Limit, LimitName, Limits, Reason, Shape, State, View};
use crate::time::{Clock, Millis, Timestamp};

/// A block in force on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// When it ends.
    pub until: Timestamp,
    /// How long it was asked for, so that a clock that stepped back cannot stretch it without end.
    pub duration: Millis,
}

impl Block {
    /// What is left of it. A clock that stepped back further than the block is long starts it anew.
    fn left(self, now: Timestamp, clock: Clock) -> Millis {
        let left = self.until.since(now);
        let stretched = left.as_ms() > self.duration.as_ms().saturating_mul(2);
        if stretched && clock.may_rebase() { self.duration } else { left }
    }
}

/// One limit's state under its name, with the policy that left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The limit's name.
    pub name: LimitName,
    /// The policy whose arithmetic the state is in.
    pub shape: Shape,
    /// The state.
    pub state: State,
}

/// Everything that a key's limits remember.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRecord {
    /// The block, if one was asked for.
    pub block: Option<Block>,
    /// Which tiers' deltas have been counted, if any.
    pub adders: Option<Adders>,
    /// The limits that are not whole.
    pub entries: Vec<Entry>,
}

/// A limit beside what its key remembers of it.
struct Seat<'a> {
    limit: &'a Limit,
    view: View,
}

impl Limit {
    /// Consumes on the state of a key whose only limit this is, and that no block is in force on. Decides as
    /// [`decide`] does, in a third of its time.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(crate) fn consume(
        &self,
        state: &mut State,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> Decision {
        let shape = self.shape();
        let (view, admitted) = shape.charge_state(state, cost, now, clock);
        let wait = if admitted { Some(Millis::ZERO) } else { shape.retry_after(&view, cost) };
        Decision {
            reason: match wait {
                _ if admitted => Reason::Ok,
                Some(_) => Reason::Limited,
                None => Reason::Never,
            },
            decided_by: 0,
            limit: shape.capacity(),
            remaining: shape.remaining(&view),
            retry_after: wait,
            reset_after: shape.reset_after(&view),
        }
    }
}

impl Seat<'_> {
    fn fits(&self, cost: u64) -> bool {
        self.limit.shape().fits(&self.view, cost)
    }
}

impl LimitRecord {
    /// Decides, and charges every limit or none. True when the record changed: a denied call changes
    /// it only where the clock or a policy moved a state.
    pub fn consume(
        &mut self,
        limits: &Limits,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> (Decision, bool) {
        let mut seats = self.seats(limits, now, clock);
        let blocked = self.blocked_for(now, clock);
        let admitted = blocked == Millis::ZERO && seats.iter().all(|seat| seat.fits(cost));
        if admitted {
            for seat in &mut seats {
                seat.limit.shape().charge(&mut seat.view, cost);
            }
        }
        let decision = decide(&seats, cost, admitted, blocked);
        let block_moved = self.block.is_some_and(|block| now.plus(blocked) < block.until);
        let changed = self.keep(&seats, |seat| admitted || seat.view.rebased) || block_moved;
        if changed {
            self.prune(now, clock);
        }
        (decision, changed)
    }

    /// What [`consume`](Self::consume) would answer, with `remaining` and `reset_after` as they are. Changes nothing.
    #[must_use]
    pub fn peek(&self, limits: &Limits, cost: u64, now: Timestamp, clock: Clock) -> Decision {
        let seats = self.seats(limits, now, clock);
        let blocked = self.blocked_for(now, clock);
        let admitted = blocked == Millis::ZERO && seats.iter().all(|seat| seat.fits(cost));
        decide(&seats, cost, admitted, blocked)
    }

    /// Gives units back to every limit that has used some; never above a full budget, never creating state.
    pub fn refund(&mut self, limits: &Limits, cost: u64, now: Timestamp, clock: Clock) -> bool {
        let before = self.clone();
        let mut seats = self.seats(limits, now, clock);
        seats.retain(|seat| before.entries.iter().any(|entry| entry.name == *seat.limit.name()));
        for seat in &mut seats {
            seat.limit.shape().refund(&mut seat.view, cost);
        }
        self.keep(&seats, |_| true);
        self.prune(now, clock);
        *self != before
    }

    /// Consumes, and takes up to `units` more for a tier to spend.
    pub fn reserve(
        &mut self,
        limits: &Limits,
        cost: u64,
        units: u64,
        now: Timestamp,
        clock: Clock,
    ) -> (Option<Share>, bool) {
        let (decision, mut changed) = self.consume(limits, cost, now, clock);
        let most = decision.remaining.checked_div(SHARES).unwrap_or(0);
        let granted = if decision.allowed() { units.min(most) } else { 0 };
        if granted > 0 {
            changed |= self.consume(limits, granted, now, clock).1;
        }
        (self.share(limits, decision, granted, now, clock), changed)
    }

    /// Adds what a tier has admitted already, then consumes.
    pub fn add(
        &mut self,
        limits: &Limits,
        delta: Option<&Delta>,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> (Option<Share>, bool) {
        let added = delta.is_some_and(|delta| {
            self.apply(limits, delta, now, clock, &|shape, view| {
                shape.add(view, delta.units, delta.span, now)
            })
        });
        let (decision, changed) = self.consume(limits, cost, now, clock);
        (self.share(limits, decision, 0, now, clock), added || changed)
    }

    /// Takes back what a tier did not spend, as far as it still counts.
    pub fn give_back(
        &mut self,
        limits: &Limits,
        delta: &Delta,
        now: Timestamp,
        clock: Clock,
    ) -> bool {
        let known = |limit: &Limit| {
            self.entries.iter().any(|e| e.name == *limit.name() && e.shape == *limit.shape())
        };
        if !limits.iter().all(known) {
            return false;
        }
        self.apply(limits, delta, now, clock, &|shape, view| {
            let before = view.state;
            shape.give_back(view, delta.units, delta.span);
            view.state != before
        })
    }

    /// Changes the limits' states once per delta; remembers that it did. True when it did.
    fn apply(
        &mut self,
        limits: &Limits,
        delta: &Delta,
        now: Timestamp,
        clock: Clock,
        change: &dyn Fn(&Shape, &mut View) -> bool,
    ) -> bool {
        if self.adders.as_ref().is_some_and(|adders| adders.until > now && adders.has(delta)) {
            return false;
        }
        let mut seats = self.seats(limits, now, clock);
        seats.retain_mut(|seat| change(seat.limit.shape(), &mut seat.view));
        let changed = self.keep(&seats, |_| true);
        if changed {
            let memory = limits.iter().map(|limit| limit.shape().adds_for()).max();
            // A clock that was set back may show the delta's time again.
            let until = now.max(delta.span).plus(memory.unwrap_or(Millis::ZERO));
            self.adders.get_or_insert_default().note(delta, until);
            self.prune(now, clock);
        }
        changed
    }

    /// What a tier may decide by from now on; `None` for several limits, which no tier decides on.
    fn share(
        &self,
        limits: &Limits,
        decision: Decision,
        granted: u64,
        now: Timestamp,
        clock: Clock,
    ) -> Option<Share> {
        limits.single()?;
        let seats = self.seats(limits, now, clock);
        let Seat { limit, view } = seats.first()?;
        let shape = limit.shape();
        let (span, holds_for) = (shape.span(view, now), shape.holds_for(view));
        Some(Share { decision, granted, span, holds_for, state: view.state, now })
    }

    /// Denies every call for that long.
    pub fn block(&mut self, duration: Millis, now: Timestamp, clock: Clock) {
        self.block = Some(Block { until: now.plus(duration), duration });
        self.prune(now, clock);
    }

    /// Ends a block. True when there was one.
    pub fn unblock(&mut self) -> bool {
        self.block.take().is_some()
    }

    /// Forgets these limits and the block; limits of other Limiters on the key stay.
    pub fn reset(&mut self, limits: &Limits) {
        self.block = None;
        self.entries.retain(|entry| limits.iter().all(|limit| *limit.name() != entry.name));
    }

    /// When, left alone, the key is whole: every budget full and the block over.
    #[must_use]
    pub fn whole_at(&self) -> Timestamp {
        let entries = self.entries.iter().map(|entry| entry.shape.whole_at(entry.state));
        let block = self.block.map(|block| block.until);
        let adders = self.adders.as_ref().map(|adders| adders.until);
        entries.chain(block).chain(adders).max().unwrap_or_default()
    }

    fn blocked_for(&self, now: Timestamp, clock: Clock) -> Millis {
        self.block.map_or(Millis::ZERO, |block| block.left(now, clock))
    }

    fn seats<'a>(&self, limits: &'a Limits, now: Timestamp, clock: Clock) -> Vec<Seat<'a>> {
        let seat = |limit: &'a Limit| {
            let entry = self.entries.iter().find(|entry| entry.name == *limit.name());
            let view = match entry {
                Some(entry) => limit.shape().view_of(&entry.shape, entry.state, now, clock),
                None => limit.shape().view(State::default(), now, clock),
            };
            Seat { limit, view }
        };
        limits.iter().map(seat).collect()
    }

    /// Takes over the seats that `wanted` names. True when there was one.
    fn keep(&mut self, seats: &[Seat<'_>], wanted: impl Fn(&Seat<'_>) -> bool) -> bool {
        let mut kept = false;
        for seat in seats.iter().filter(|seat| wanted(seat)) {
            kept = true;
            let name = seat.limit.name();
            let (shape, state) = (*seat.limit.shape(), seat.view.state);
            match self.entries.iter_mut().find(|entry| entry.name == *name) {
                Some(entry) => (entry.shape, entry.state) = (shape, state),
                None => self.entries.push(Entry { name: name.clone(), shape, state }),
            }
        }
        kept
    }

    /// Drops what is whole again, and settles a block that the clock stretched.
    fn prune(&mut self, now: Timestamp, clock: Clock) {
        self.entries.retain(|entry| {
            let view = entry.shape.view(entry.state, now, clock);
            entry.shape.reset_after(&view) > Millis::ZERO
        });
        self.adders = self.adders.take().filter(|adders| adders.until > now);
        self.block = self.block.and_then(|block| {
            let left = block.left(now, clock);
            (left > Millis::ZERO).then(|| Block { until: now.plus(left), ..block })
        });
    }
}

fn decide(seats: &[Seat<'_>], cost: u64, admitted: bool, blocked: Millis) -> Decision {
    let mut decision = Decision {
        reason: Reason::Ok,
        decided_by: 0,
        limit: 0,
        remaining: u64::MAX,
        retry_after: Some(Millis::ZERO),
        reset_after: blocked,
    };
    for (index, seat) in seats.iter().enumerate() {
        let shape = seat.limit.shape();
        let remaining = shape.remaining(&seat.view);
        // Charged seats have no wait; asking one for the same cost again would find one.
        let wait = if admitted { Some(Millis::ZERO) } else { shape.retry_after(&seat.view, cost) };
        let names = index == 0
            || if admitted {
                remaining < decision.remaining
            } else {
                longer(wait, decision.retry_after)
            };
        if names {
            (decision.decided_by, decision.limit) = (index, shape.capacity());
            decision.retry_after = wait;
        }
        decision.remaining = decision.remaining.min(remaining);
        decision.reset_after = decision.reset_after.max(shape.reset_after(&seat.view));
    }
    if admitted {
        return decision;
    }
    decision.reason = if decision.retry_after.is_none() { Reason::Never } else { Reason::Limited };
    if blocked > Millis::ZERO {
        block_decides(&mut decision, seats, blocked);
    }
    decision
}

/// A block in force leaves nothing, and names the first limit; "never" wins over it.
fn block_decides(decision: &mut Decision, seats: &[Seat<'_>], blocked: Millis) {
    decision.remaining = 0;
    let Some(wait) = decision.retry_after else {
        return;
    };
    decision.reason = Reason::Blocked;
    decision.retry_after = Some(wait.max(blocked));
    decision.decided_by = 0;
    decision.limit = seats.first().map_or(0, |seat| seat.limit.capacity());
}

/// Whether wait `a` is longer than `b`, where `None` is without end.
fn longer(a: Option<Millis>, b: Option<Millis>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a > b,
        (None, Some(_)) => true,
        (_, None) => false,
    }
}
