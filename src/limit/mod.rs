//! Rate limits: validated policies, pure steps, decisions.
//!
//! Each algorithm is a file. What they share is the shape of their state (three numbers), so that a
//! record, a row of the memory table and a line of Lua hold every algorithm alike.

mod decision;
mod fixed_window;
mod leaky_bucket;
mod policy;
mod record;
mod share;
mod sliding_window;

pub use decision::{Decision, Reason};
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use policy::{Algorithm, Limit, LimitName, LimitOptions, Limits, PolicyError};
pub use record::{Block, Entry, LimitRecord};
pub(crate) use share::ON_THE_WAY;
pub use share::{Adders, Delta, MAX_ADDERS, SHARES, Share};
pub use sliding_window::SlidingWindow;

use core::num::NonZeroU64;

use crate::time::{Clock, Millis, Timestamp};

/// The most limits that one record holds, and so one Limiter.
pub const MAX_LIMITS: usize = 8;

/// The most characters of a record, but for a committed result.
pub const MAX_RECORD_CHARS: usize = 512;

/// Capacity times window stays below this, so that every sum of a decision is exact in a double.
pub(crate) const EXACT_BELOW: u64 = 1 << 51;

/// One limit's state. What the numbers mean is its [`Shape`]'s business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Bucket: the debt in units of 1/rate ms. Windows: units admitted in the current window.
    pub level: u64,
    /// Sliding window: units admitted in the window before. Else 0.
    pub before: u64,
    /// Bucket: when the debt was true. Windows: the start of the current window.
    pub at: Timestamp,
}

/// A state as it stands now, and what a step has to know about how it got there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) state: State,
    /// Milliseconds of the current window that have passed.
    elapsed_ms: u64,
    /// How far the clock stands behind the state: time stands still until it has caught up.
    behind_ms: u64,
    /// The state was moved (a long clock step back, a changed policy), and that is kept even when the call is denied.
    pub(crate) rebased: bool,
}

impl View {
    const fn at(state: State) -> Self {
        Self { state, elapsed_ms: 0, behind_ms: 0, rebased: false }
    }
}

/// The arithmetic of one limit: an algorithm with its validated numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Leaky bucket, token bucket, GCRA.
    Bucket(LeakyBucket),
    /// Fixed window anchored at the first admitted hit.
    Fixed(FixedWindow),
    /// Two-count sliding window.
    Sliding(SlidingWindow),
}

/// Calls the same method of whichever algorithm it is.
macro_rules! each {
    ($shape:expr, $inner:ident => $call:expr) => {
        match $shape {
            Shape::Bucket($inner) => $call,
            Shape::Fixed($inner) => $call,
            Shape::Sliding($inner) => $call,
        }
    };
}

/// Charges a state by one algorithm's arithmetic, if the cost fits: how it stands, and whether it was charged.
macro_rules! charged {
    ($shape:ident, $state:ident, $cost:ident, $now:ident, $clock:ident) => {{
        let mut view = $shape.view(*$state, $now, $clock);
        let fits = $shape.fits(&view, $cost);
        if fits {
            $shape.charge(&mut view, $cost);
        }
        if fits || view.rebased {
            *$state = view.state;
        }
        (view, fits)
    }};
}

/// The decision of one algorithm on the state of a key whose only limit this is.
macro_rules! decided {
    ($shape:ident, $limit:expr, $state:ident, $cost:ident, $now:ident, $clock:ident) => {{
        let (view, admitted) = charged!($shape, $state, $cost, $now, $clock);
        let (reason, wait_ms) = if admitted {
            (Reason::Ok, Some(0))
        } else if $cost > $limit {
            (Reason::Never, None)
        } else {
            (Reason::Limited, Some($shape.retry_after_ms(&view, $cost)))
        };
        Decision {
            reason,
            decided_by: 0,
            limit: $limit,
            remaining: $shape.remaining(&view),
            retry_after: wait_ms.map(Millis::from_ms),
            reset_after: Millis::from_ms($shape.reset_after_ms(&view)),
        }
    }};
}

impl Shape {
    /// The most units that can be admitted at once.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.burst(),
            Self::Fixed(window) => window.limit(),
            Self::Sliding(window) => window.limit(),
        }
    }

    pub(crate) fn view(&self, state: State, now: Timestamp, clock: Clock) -> View {
        each!(self, shape => shape.view(state, now, clock))
    }

    /// The view of a state that another policy left: what was used stays used, in whole units.
    pub(crate) fn view_of(&self, old: &Self, state: State, now: Timestamp, clock: Clock) -> View {
        if self == old {
            return self.view(state, now, clock);
        }
        let before = old.view(state, now, clock);
        let used = each!(old, shape => shape.used(&before)).min(self.capacity());
        let at = Timestamp::from_ms(now.as_ms().saturating_add(before.behind_ms));
        let state = match self {
            Self::Bucket(bucket) => bucket.with_used(used, at),
            Self::Sliding(window) => window.with_used(used, at),
            Self::Fixed(window) => {
                State { level: used, before: 0, at: window.anchor(old, &before, at) }
            }
        };
        View { rebased: used > 0, ..self.view(state, now, clock) }
    }

    /// Charges a state if the cost fits; answers whether it was charged.
    #[inline(always)]
    pub(crate) fn try_charge(
        &self,
        state: &mut State,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> bool {
        match self {
            Self::Bucket(bucket) => charged!(bucket, state, cost, now, clock).1,
            Self::Fixed(_) | Self::Sliding(_) => {
                self.consume_elsewhere(state, cost, now, clock).allowed()
            }
        }
    }

    /// Consumes on the state of a key whose only limit this is, and that no block is in force on.
    #[inline(always)]
    pub(crate) fn consume(
        &self,
        state: &mut State,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> Decision {
        match self {
            Self::Bucket(bucket) => decided!(bucket, bucket.burst(), state, cost, now, clock),
            Self::Fixed(_) | Self::Sliding(_) => self.consume_elsewhere(state, cost, now, clock),
        }
    }

    /// As `consume`, where it is not on the hot path.
    #[inline(never)]
    pub(crate) fn consume_elsewhere(
        &self,
        state: &mut State,
        cost: u64,
        now: Timestamp,
        clock: Clock,
    ) -> Decision {
        let limit = self.capacity();
        each!(self, shape => decided!(shape, limit, state, cost, now, clock))
    }

    pub(crate) fn fits(&self, view: &View, cost: u64) -> bool {
        each!(self, shape => shape.fits(view, cost))
    }

    pub(crate) fn charge(&self, view: &mut View, cost: u64) {
        each!(self, shape => shape.charge(view, cost));
    }

    pub(crate) fn refund(&self, view: &mut View, cost: u64) {
        each!(self, shape => shape.refund(view, cost));
    }

    #[inline]
    pub(crate) fn remaining(&self, view: &View) -> u64 {
        each!(self, shape => shape.remaining(view))
    }

    /// The wait after which `cost` fits; `None` where no wait helps.
    #[inline]
    pub(crate) fn retry_after(&self, view: &View, cost: u64) -> Option<Millis> {
        if cost > self.capacity() {
            return None;
        }
        if self.fits(view, cost) {
            return Some(Millis::ZERO);
        }
        Some(Millis::from_ms(each!(self, shape => shape.retry_after_ms(view, cost))))
    }

    #[inline]
    pub(crate) fn reset_after(&self, view: &View) -> Millis {
        Millis::from_ms(each!(self, shape => shape.reset_after_ms(view)))
    }

    /// Names the window that a view is in.
    pub(crate) fn span(&self, view: &View, now: Timestamp) -> Timestamp {
        if matches!(self, Self::Bucket(_)) { now } else { view.state.at }
    }

    /// How long what is charged from now on counts in the view's span.
    pub(crate) fn holds_for(&self, view: &View) -> Millis {
        Millis::from_ms(each!(self, shape => shape.holds_for_ms(view)))
    }

    /// Charges what was admitted elsewhere in the span, whether it fits or not; false when that span is
    /// so long over that it counts nowhere.
    pub(crate) fn add(&self, view: &mut View, units: u64, span: Timestamp, now: Timestamp) -> bool {
        each!(self, shape => shape.add(view, units, span, now))
    }

    /// Takes off what was charged in the span and not spent, as far as it is still charged.
    pub(crate) fn give_back(&self, view: &mut View, units: u64, span: Timestamp) {
        each!(self, shape => shape.give_back(view, units, span));
    }

    /// How long a delta may count, and so its number has to be remembered.
    pub(crate) fn adds_for(&self) -> Millis {
        Millis::from_ms(each!(self, shape => shape.adds_for_ms()))
    }

    /// When `state`, left alone, is whole: from then on its key may vanish.
    pub(crate) fn whole_at(&self, state: State) -> Timestamp {
        let view = self.view(state, state.at, Clock::Caller);
        state.at.plus(self.reset_after(&view))
    }
}

/// The quotient, rounded up.
const fn ceil_div(dividend: u64, divisor: NonZeroU64) -> u64 {
    dividend.div_ceil(divisor.get())
}
