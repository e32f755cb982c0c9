//! Leaky bucket, token bucket and GCRA: one engine, exact for every rational rate.
//!
//! The state is a debt in units of 1/rate milliseconds, never an interval: "7 per minute" has no whole
//! interval, but its debt is always whole. (The generic cell rate algorithm of ITU-T I.371, annex A,
//! with its theoretical arrival time written as `at + debt / rate`.)

use core::num::NonZeroU64;

use super::share::ON_THE_WAY;
use super::{State, View, ceil_div};
use crate::time::{Clock, Millis, Timestamp, product};

/// A validated bucket: `burst` units of capacity, `rate` units leaking per `window` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeakyBucket {
    rate: NonZeroU64,
    window: NonZeroU64,
    burst: u64,
    /// The debt of a bucket that is used up. Derived.
    capacity_debt: u64,
    /// Milliseconds that a full bucket takes to drain. Derived, kept so that no decision divides to bound time.
    drain_ms: u64,
}

impl LeakyBucket {
    /// A bucket, or `None` where the arithmetic would not be exact in a double:
    /// with `rate / window` in lowest terms, `max(rate, burst) * window` must stay below 2^51.
    #[must_use]
    pub fn new(rate: u64, window: Millis, burst: u64) -> Option<Self> {
        let divisor = NonZeroU64::new(greatest_common_divisor(rate, window.as_ms()))?;
        let rate = NonZeroU64::new(rate / divisor)?;
        let window = NonZeroU64::new(window.as_ms() / divisor)?;
        let most = product(rate.get().max(burst), window.get());
        if burst == 0 || most >= super::EXACT_BELOW {
            return None;
        }
        let capacity_debt = product(burst, window.get());
        let drain_ms = ceil_div(capacity_debt, rate);
        Some(Self { rate, window, burst, capacity_debt, drain_ms })
    }

    /// Units that leak per [`window_ms`](Self::window_ms), in lowest terms.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.rate.get()
    }

    /// Milliseconds in which [`rate`](Self::rate) units leak, in lowest terms.
    #[must_use]
    pub const fn window_ms(&self) -> u64 {
        self.window.get()
    }

    /// Capacity in units.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// The debt of a cost that fits an empty bucket. The product is a plain one, which `new` bounded: a checked
    /// one takes a multiplication of 128 bits.
    #[inline(always)]
    const fn debt_of(&self, units: u64) -> u64 {
        let units = if units < self.burst { units } else { self.burst };
        units.wrapping_mul(self.window.get())
    }

    /// The debt of any number of units.
    const fn debt_of_all(&self, units: u64) -> u64 {
        product(units, self.window.get())
    }

    /// What leaks within so many milliseconds. Within a full drain the product is a plain one, too; what tiers
    /// have added may take longer.
    #[inline(always)]
    const fn leaked(&self, elapsed_ms: u64) -> u64 {
        if elapsed_ms <= self.drain_ms {
            return elapsed_ms.wrapping_mul(self.rate.get());
        }
        product(elapsed_ms, self.rate.get())
    }

    #[inline(always)]
    pub(super) fn view(&self, state: State, now: Timestamp, clock: Clock) -> View {
        let behind = state.at.since(now).as_ms();
        if behind == 0 {
            let leaked = self.leaked(now.since(state.at).as_ms());
            return View::at(State { level: state.level.saturating_sub(leaked), at: now, ..state });
        }
        if behind > self.drain_ms && clock.may_rebase() {
            return View { rebased: true, ..View::at(State { at: now, ..state }) };
        }
        View { behind_ms: behind, ..View::at(state) }
    }

    #[inline(always)]
    pub(super) const fn fits(&self, view: &View, cost: u64) -> bool {
        cost <= self.burst
            && view.state.level.saturating_add(self.debt_of(cost)) <= self.capacity_debt
    }

    #[inline(always)]
    pub(super) const fn charge(&self, view: &mut View, cost: u64) {
        view.state.level = view.state.level.saturating_add(self.debt_of(cost));
    }

    pub(super) const fn refund(&self, view: &mut View, cost: u64) {
        view.state.level = view.state.level.saturating_sub(self.debt_of_all(cost));
    }

    #[inline(always)]
    pub(super) fn remaining(&self, view: &View) -> u64 {
        self.capacity_debt.saturating_sub(view.state.level) / self.window
    }

    #[inline(always)]
    pub(super) fn retry_after_ms(&self, view: &View, cost: u64) -> u64 {
        let wanted = view.state.level.saturating_add(self.debt_of(cost));
        let over = wanted.saturating_sub(self.capacity_debt);
        ceil_div(over, self.rate).saturating_add(view.behind_ms)
    }

    #[inline(always)]
    pub(super) fn reset_after_ms(&self, view: &View) -> u64 {
        if view.state.level == 0 {
            return 0;
        }
        ceil_div(view.state.level, self.rate).saturating_add(view.behind_ms)
    }

    pub(super) fn used(&self, view: &View) -> u64 {
        ceil_div(view.state.level, self.window)
    }

    pub(super) const fn with_used(&self, used: u64, now: Timestamp) -> State {
        State { level: self.debt_of(used), before: 0, at: now }
    }

    pub(super) const fn holds_for_ms(&self, _: &View) -> u64 {
        self.drain_ms
    }

    pub(super) const fn adds_for_ms(&self) -> u64 {
        self.drain_ms.saturating_add(ON_THE_WAY.as_ms())
    }

    pub(super) fn add(&self, view: &mut View, units: u64, span: Timestamp, now: Timestamp) -> bool {
        let counts = now.since(span).as_ms() <= self.adds_for_ms();
        if counts {
            let level = view.state.level.saturating_add(self.debt_of_all(units));
            view.state.level = level.min(super::EXACT_BELOW.saturating_mul(2));
        }
        counts
    }

    /// What has leaked since may have made room already, so it is not given back once more.
    pub(super) fn give_back(&self, view: &mut View, units: u64, span: Timestamp) {
        if span <= view.state.at {
            let leaked = self.leaked(view.state.at.since(span).as_ms());
            let left = self.debt_of_all(units).saturating_sub(leaked);
            view.state.level = view.state.level.saturating_sub(left);
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
