//! A mirror of the shared store's state, charged here first: the shared store is told behind it.

use super::{Ask, Question, TICK, TRUSTED_FOR};
use crate::limit::{Decision, Delta, Limit, Shape, Share, State};
use crate::time::{Clock, Timestamp};

/// What a node knows of one key's only limit, and what the shared store does not know yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mirror {
    /// The shared store's state, with this node's own units charged on top.
    state: State,
    span: Timestamp,
    /// How long, on this process's clock, the state may be charged here.
    until: Timestamp,
    /// The shared store's time when it told the state, and when that was heard.
    told_at: Timestamp,
    heard: Timestamp,
    /// Units admitted here that no question has carried yet, and the span of the oldest of them.
    pending: u64,
    pending_span: Timestamp,
    /// What a question has carried whose answer has not come. It goes out again as it is.
    sent: Option<Delta>,
    busy: bool,
    /// What was told is not to be charged any more.
    stale: bool,
    /// The question under way may admit a call, on a state that is newer than the mirror: beside it
    /// nothing is admitted here.
    deciding: bool,
}

impl Mirror {
    fn unsynced(&self) -> u64 {
        self.pending.saturating_add(self.sent.map_or(0, |delta| delta.units))
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.unsynced() > 0
    }

    /// Whether there are units beside those that the next question has to carry.
    pub(super) const fn needs_two_questions(&self) -> bool {
        self.sent.is_some() && self.pending > 0
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.busy
    }

    /// Units that the shared store does not know of are kept for as long as it would still count them.
    pub(super) fn over_at(&self) -> Timestamp {
        if self.is_dirty() { self.until.plus(crate::limit::ON_THE_WAY) } else { self.until }
    }

    /// Decides on the mirror, as far as that is allowed.
    pub(super) fn consume(
        &mut self,
        limit: &Limit,
        cost: u64,
        most: u64,
        now: Timestamp,
        clock: Clock,
    ) -> Option<Decision> {
        let mixed = self.pending > 0 && self.pending_span != self.span;
        let closed = self.deciding || self.stale || now >= self.until;
        if closed || mixed && !matches!(limit.shape(), Shape::Bucket(_)) {
            return None;
        }
        // Behind the shared store's clock by as long as the answer was on its way, so that less has leaked.
        let store_now = self.told_at.plus(now.since(self.heard));
        let mut state = self.state;
        let decision = limit.shape().consume_elsewhere(&mut state, cost, store_now, clock);
        if !decision.allowed() {
            let fresh = now.since(self.heard) < TRUSTED_FOR;
            return fresh.then_some(decision);
        }
        if self.unsynced().saturating_add(cost) > most {
            return None;
        }
        self.state = state;
        if self.pending == 0 {
            self.pending_span = self.span;
        }
        self.pending = self.pending.saturating_add(cost);
        Some(decision)
    }

    /// A question goes out; answers what it is to carry. One whose fate is unknown keeps its number, so
    /// that it counts once.
    pub(super) fn ask(&mut self, node: u64, seq: &mut u64, cost: u64) -> Option<Delta> {
        (self.busy, self.deciding) = (true, cost > 0);
        if self.sent.is_none() && self.pending > 0 {
            *seq = seq.saturating_add(1);
            let (units, span) = (self.pending, self.pending_span);
            self.sent = Some(Delta { node, seq: *seq, units, span });
            self.pending = 0;
        }
        self.sent
    }

    pub(super) fn told(
        &mut self,
        shape: &Shape,
        ask: &Ask,
        share: &Share,
        current: bool,
        now: Timestamp,
        clock: Clock,
    ) {
        self.failed();
        if matches!(ask.question, Question::Add { delta: Some(_), .. }) {
            self.sent = None;
        }
        let mut view = shape.view(share.state, share.now, clock);
        shape.add(&mut view, self.pending, self.pending_span, share.now);
        self.state = view.state;
        (self.span, self.told_at) = (share.span, share.now);
        self.heard = now.plus(TICK);
        self.until = ask.holds_until(share.holds_for);
        // A window begins with its first unit, and the shared store says when that was.
        let unbegun = matches!(shape, Shape::Fixed(_)) && self.state.level == 0;
        self.stale = !current || unbegun;
    }

    pub(super) const fn failed(&mut self) {
        (self.busy, self.deciding) = (false, false);
    }

    /// The next call asks the shared store.
    pub(super) fn forget(&mut self) {
        self.stale = true;
    }
}
