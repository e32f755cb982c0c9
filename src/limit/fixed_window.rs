//! Fixed window, anchored at the key's first admitted hit and over at `start + window`.

use core::num::NonZeroU64;

use super::{Shape, State, View};
use crate::time::{Clock, MAX_SAFE, Millis, Timestamp};

/// A validated fixed window: `limit` units per `window` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    limit: u64,
    window: NonZeroU64,
}

impl FixedWindow {
    /// A window, or `None` where the limit is not from 1 to 2^53 - 1.
    #[must_use]
    pub fn new(limit: u64, window: Millis) -> Option<Self> {
        let window = NonZeroU64::new(window.as_ms())?;
        (1..=MAX_SAFE).contains(&limit).then_some(Self { limit, window })
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

    pub(super) const fn view(&self, state: State, now: Timestamp, clock: Clock) -> View {
        let behind = state.at.since(now).as_ms();
        if state.level == 0 || now.since(state.at).as_ms() >= self.window.get() {
            return View::at(State { level: 0, before: 0, at: now });
        }
        if behind > self.window.get() && clock.may_rebase() {
            return View { rebased: true, ..View::at(State { at: now, ..state }) };
        }
        View { elapsed_ms: now.since(state.at).as_ms(), behind_ms: behind, ..View::at(state) }
    }

    pub(super) const fn fits(&self, view: &View, cost: u64) -> bool {
        view.state.level.saturating_add(cost) <= self.limit
    }

    pub(super) const fn charge(&self, view: &mut View, cost: u64) {
        view.state.level = view.state.level.saturating_add(cost);
    }

    pub(super) const fn refund(&self, view: &mut View, cost: u64) {
        view.state.level = view.state.level.saturating_sub(cost);
    }

    pub(super) const fn remaining(&self, view: &View) -> u64 {
        self.limit.saturating_sub(view.state.level)
    }

    pub(super) const fn retry_after_ms(&self, view: &View, cost: u64) -> u64 {
        if self.fits(view, cost) { 0 } else { self.reset_after_ms(view) }
    }

    pub(super) const fn reset_after_ms(&self, view: &View) -> u64 {
        if view.state.level == 0 {
            return 0;
        }
        self.window.get().saturating_sub(view.elapsed_ms).saturating_add(view.behind_ms)
    }

    pub(super) const fn used(&self, view: &View) -> u64 {
        view.state.level
    }

    /// Where usage taken over from another policy is anchored: at the old window's start while that
    /// is still inside this one, else at `now`.
    pub(super) fn anchor(&self, old: &Shape, view: &View, now: Timestamp) -> Timestamp {
        let start = view.state.at;
        let open = now.since(start).as_ms() < self.window.get();
        if matches!(old, Shape::Fixed(_)) && open { start } else { now }
    }

    pub(super) const fn holds_for_ms(&self, view: &View) -> u64 {
        self.window.get().saturating_sub(view.elapsed_ms).saturating_add(view.behind_ms)
    }

    pub(super) const fn adds_for_ms(&self) -> u64 {
        self.window.get()
    }

    pub(super) fn add(&self, view: &mut View, units: u64, span: Timestamp, now: Timestamp) -> bool {
        let counts = now.since(span).as_ms() < self.window.get();
        if counts {
            if view.state.level == 0 {
                view.state.at = span.min(now);
            }
            view.state.level = view.state.level.saturating_add(units).min(MAX_SAFE);
        }
        counts
    }

    pub(super) fn give_back(&self, view: &mut View, units: u64, span: Timestamp) {
        if view.state.at == span {
            self.refund(view, units);
        }
    }
}
