//! Shares: units that the shared store has charged already, to be spent here.

use super::{Ask, Question, TRUSTED_FOR};
use crate::limit::{Decision, Limit, Reason, SHARES, Shape, Share};
use crate::time::{Millis, Timestamp};

/// A share in use is confirmed ahead of need, early enough for the answer to come in time.
const CONFIRMED_AGAIN_AFTER: Millis = Millis::from_ms(500);

/// The most units of a key that one node holds.
pub(super) const fn largest(most: u64, capacity: u64) -> u64 {
    let share = capacity / SHARES;
    if most < share { most } else { share }
}

/// Units of one window.
#[derive(Clone, Copy, Debug, Default)]
struct Portion {
    units: u64,
    span: Timestamp,
    until: Timestamp,
}

/// What a node holds of one key's budget, the portion to be spent first in front.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lease {
    portions: [Portion; 2],
    /// A question whose answer may bring a share is under way.
    asking: bool,
    /// What was left at the shared store, and how long until it is whole.
    remaining: u64,
    reset_after: Millis,
    /// When that was heard; zero when it never was.
    heard: Timestamp,
    /// When the newest question was asked whose answer knew of no block.
    confirmed: Option<Timestamp>,
    /// When a block was heard of: questions that were asked until then may not have known.
    doubted: Timestamp,
    used: Timestamp,
}

impl Lease {
    pub(super) fn held(&self) -> u64 {
        self.portions.iter().fold(0, |sum: u64, portion| sum.saturating_add(portion.units))
    }

    pub(super) fn over_at(&self) -> Timestamp {
        let until = self.portions.iter().filter(|p| p.units > 0).map(|p| p.until).max();
        until.unwrap_or_default().max(self.heard.plus(TRUSTED_FOR))
    }

    /// Spends units that are held; none when they do not suffice, or when another node may have blocked the key.
    pub(super) fn spend(&mut self, limit: &Limit, cost: u64, now: Timestamp) -> Option<Decision> {
        self.drop_over(now);
        if cost > self.held() || !self.confirmed_within(TRUSTED_FOR, now) {
            return None;
        }
        let mut left = cost;
        for portion in &mut self.portions {
            let spent = left.min(portion.units);
            portion.units = portion.units.saturating_sub(spent);
            left = left.saturating_sub(spent);
        }
        self.move_up();
        self.used = now;
        Some(Decision {
            reason: Reason::Ok,
            decided_by: 0,
            limit: limit.capacity(),
            remaining: self.remaining.saturating_add(self.held()),
            retry_after: Some(Millis::ZERO),
            reset_after: self.reset_after.minus(now.since(self.heard)),
        })
    }

    /// Whether to ask ahead of need: half of the share is spent, or half the time that it is trusted is over.
    pub(super) fn wants_more(&self, most: u64, now: Timestamp) -> bool {
        let stale = !self.confirmed_within(CONFIRMED_AGAIN_AFTER, now) && self.held() > 0;
        let low = self.units_wanted(most) > 0 && self.held() <= most / 2 && self.held() > 0;
        !self.asking && (stale || low && self.remaining >= SHARES)
    }

    fn confirmed_within(&self, span: Millis, now: Timestamp) -> bool {
        self.confirmed.is_some_and(|confirmed| now.since(confirmed) < span)
    }

    fn units_wanted(&self, most: u64) -> u64 {
        let [first, second] = self.portions;
        if self.asking || second.units > 0 { 0 } else { most.saturating_sub(first.units) }
    }

    /// A question goes out; answers how large a share to ask for. A key that is asked about now and then
    /// is left to the shared store: a share would only lie about.
    pub(super) fn ask(&mut self, most: u64, cost: u64, now: Timestamp) -> u64 {
        self.drop_over(now);
        let seldom = now.since(self.used) >= TRUSTED_FOR;
        self.used = now;
        if seldom {
            return 0;
        }
        let units = self.units_wanted(most);
        self.asking |= units > 0 || cost == 0;
        units
    }

    /// The answer. What was granted before this node reset the key is not spent; while a block is in force,
    /// nothing is.
    pub(super) fn told(
        &mut self,
        shape: &Shape,
        ask: &Ask,
        share: &Share,
        current: bool,
        now: Timestamp,
    ) {
        self.failed(ask);
        self.heard = now;
        match share.decision.reason {
            Reason::Blocked => self.doubt(now),
            // That comes before a block.
            Reason::Never => {}
            Reason::Ok | Reason::Limited => self.confirm(ask.sent),
        }
        self.remaining = share.decision.remaining.saturating_sub(share.granted);
        self.reset_after = share.decision.reset_after;
        if !current {
            return self.portions = Default::default();
        }
        // Of another window than the shared store's: that was reset.
        if !matches!(shape, Shape::Bucket(_)) {
            self.drop_all(|portion| portion.span != share.span);
        }
        let until = ask.holds_until(share.holds_for);
        let granted = Portion { units: share.granted, span: share.span, until };
        if let Some(free) = self.portions.iter_mut().find(|portion| portion.units == 0) {
            *free = granted;
        }
        self.move_up();
    }

    pub(super) const fn failed(&mut self, ask: &Ask) {
        if matches!(
            ask.question,
            Question::Reserve { cost: 0, .. } | Question::Reserve { units: 1.., .. }
        ) {
            self.asking = false;
        }
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.held() > 0 && now.since(self.used) >= super::IDLE
    }

    /// Lets go of a portion that may still count where it was charged.
    pub(super) fn give_back(&mut self, now: Timestamp) -> Option<(u64, Timestamp)> {
        self.drop_over(now);
        let Portion { units, span, .. } = core::mem::take(self.portions.first_mut()?);
        self.move_up();
        (units > 0).then_some((units, span))
    }

    pub(super) fn forget(&mut self) {
        self.portions = Default::default();
    }

    /// A question that was asked then was answered, and there was no block.
    fn confirm(&mut self, asked: Timestamp) {
        if asked > self.doubted {
            self.confirmed = self.confirmed.max(Some(asked));
        }
    }

    /// There is a block: what is held is not spent until the shared store knows of none.
    pub(super) fn doubt(&mut self, now: Timestamp) {
        (self.confirmed, self.doubted) = (None, now);
    }

    fn drop_over(&mut self, now: Timestamp) {
        self.drop_all(|portion| now >= portion.until);
    }

    fn drop_all(&mut self, is_worthless: impl Fn(&Portion) -> bool) {
        for portion in self.portions.iter_mut().filter(|portion| is_worthless(portion)) {
            portion.units = 0;
        }
        self.move_up();
    }

    fn move_up(&mut self) {
        if let [first, second] = &mut self.portions
            && first.units == 0
        {
            core::mem::swap(first, second);
        }
    }
}
