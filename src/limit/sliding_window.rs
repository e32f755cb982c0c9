//! Sliding window: the counts of two windows aligned to the clock's epoch, the earlier one weighted by
//! how much of it the sliding window still covers. Refused calls do not count.

use core::num::NonZeroU64;

use super::{State, View, ceil_div};
use crate::time::{Clock, Millis, Timestamp, product};

/// A validated sliding window: about `limit` units in any `window` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    limit: u64,
    window: NonZeroU64,
}

impl SlidingWindow {
    /// A window, or `None` where `limit * window` would not stay below 2^51.
    #[must_use]
    pub fn new(limit: u64, window: Millis) -> Option<Self> {
        let window = NonZeroU64::new(window.as_ms())?;
        let exact = product(limit, window.get()) < super::EXACT_BELOW;
        (limit >= 1 && exact).then_some(Self { limit, window })
    }

    /// Units admitted per window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window in milliseconds.
    #[must_use]
    pub const fn window_ms(&self) -> u64 {
        self.window.get()
    }

    /// `state.level` counts the current window, `state.before` the one before it, `state.at` is the current one's start.
    pub(super) fn view(&self, state: State, now: Timestamp, clock: Clock) -> View {
        let into_ms = now.as_ms() % self.window;
        let start = Timestamp::from_ms(now.as_ms().saturating_sub(into_ms));
        let moved = View { elapsed_ms: into_ms, ..View::at(State { at: start, ..state }) };
        if state.level == 0 && state.before == 0 {
            return moved;
        }
        let behind = state.at.since(now).as_ms();
        if behind > self.window.get() && clock.may_rebase() {
            return View { rebased: true, ..moved };
        }
        if behind > 0 {
            return View { behind_ms: behind, ..View::at(state) };
        }
        let passed = start.since(state.at).as_ms();
        let (before, level) = if passed == 0 {
            (state.before, state.level)
        } else if passed <= self.window.get() {
            (state.level, 0)
        } else {
            (0, 0)
        };
        View { state: State { level, before, at: start }, ..moved }
    }

    /// Units times window; cannot overflow, because `new` bounded limit times window.
    const fn scaled(&self, units: u64) -> u64 {
        product(units, self.window.get())
    }

    /// What the two counts weigh now, in units times window.
    const fn weight(&self, view: &View) -> u64 {
        let left_ms = self.window.get().saturating_sub(view.elapsed_ms);
        product(view.state.before, left_ms).saturating_add(self.scaled(view.state.level))
    }

    pub(super) const fn fits(&self, view: &View, cost: u64) -> bool {
        cost <= self.limit
            && self.weight(view).saturating_add(self.scaled(cost)) <= self.scaled(self.limit)
    }

    pub(super) const fn charge(&self, view: &mut View, cost: u64) {
        view.state.level = view.state.level.saturating_add(cost);
    }

    /// Gives back to the current window first, then to the one before.
    pub(super) const fn refund(&self, view: &mut View, cost: u64) {
        let rest = cost.saturating_sub(view.state.level);
        view.state.level = view.state.level.saturating_sub(cost);
        view.state.before = view.state.before.saturating_sub(rest);
    }

    pub(super) fn remaining(&self, view: &View) -> u64 {
        self.scaled(self.limit).saturating_sub(self.weight(view)) / self.window
    }

    pub(super) fn retry_after_ms(&self, view: &View, cost: u64) -> u64 {
        if self.fits(view, cost) {
            return 0;
        }
        let window = self.window.get();
        let State { level, before, .. } = view.state;
        let wait_ms = match self.limit.checked_sub(level.saturating_add(cost)) {
            // The current count leaves room: wait until the earlier one weighs little enough.
            Some(room) => Self::weighs_out_ms(window, self.scaled(room), before)
                .saturating_sub(view.elapsed_ms),
            // It does not: wait for the next window, in which it is the earlier one.
            None => {
                let room = self.scaled(self.limit.saturating_sub(cost));
                window
                    .saturating_sub(view.elapsed_ms)
                    .saturating_add(Self::weighs_out_ms(window, room, level))
            }
        };
        wait_ms.saturating_add(view.behind_ms)
    }

    /// How far into a window an earlier count of `count` weighs at most `room`.
    fn weighs_out_ms(window: u64, room: u64, count: u64) -> u64 {
        window.saturating_sub(room.checked_div(count).unwrap_or(window))
    }

    pub(super) const fn reset_after_ms(&self, view: &View) -> u64 {
        let window = self.window.get();
        let left_ms = window.saturating_sub(view.elapsed_ms).saturating_add(view.behind_ms);
        match (view.state.level, view.state.before) {
            (0, 0) => 0,
            (0, _) => left_ms,
            _ => left_ms.saturating_add(window),
        }
    }

    pub(super) fn used(&self, view: &View) -> u64 {
        ceil_div(self.weight(view), self.window)
    }

    pub(super) fn with_used(&self, used: u64, now: Timestamp) -> State {
        let start = now.as_ms().saturating_sub(now.as_ms() % self.window);
        State { level: used, before: 0, at: Timestamp::from_ms(start) }
    }

    pub(super) const fn holds_for_ms(&self, view: &View) -> u64 {
        self.window.get().saturating_sub(view.elapsed_ms).saturating_add(view.behind_ms)
    }

    pub(super) const fn adds_for_ms(&self) -> u64 {
        product(self.window.get(), 2)
    }

    pub(super) fn add(&self, view: &mut View, units: u64, span: Timestamp, _: Timestamp) -> bool {
        let most = super::EXACT_BELOW / self.window;
        let counted = self.counted_in(view, span);
        if let Some(count) = counted {
            *count = count.saturating_add(units).min(most);
            return true;
        }
        false
    }

    pub(super) fn give_back(&self, view: &mut View, units: u64, span: Timestamp) {
        if let Some(count) = self.counted_in(view, span) {
            *count = count.saturating_sub(units);
        }
    }

    /// The count of the window that begins at `span`, unless it weighs nothing any more.
    fn counted_in<'a>(&self, view: &'a mut View, span: Timestamp) -> Option<&'a mut u64> {
        let age_ms = view.state.at.since(span).as_ms();
        if age_ms == 0 {
            Some(&mut view.state.level)
        } else if age_ms <= self.window.get() {
            Some(&mut view.state.before)
        } else {
            None
        }
    }
}
