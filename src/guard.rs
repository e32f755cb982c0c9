//! What a store that fails means. Events in, verdicts out; the host has the timers.

use crate::time::{Millis, Timestamp};

/// So many failures in a row, and the store is left alone for a moment.
const FAILURES_TO_OPEN: u32 = 5;
/// The first moment; each that follows a failed probe is twice as long.
const FIRST_PAUSE: Millis = Millis::from_ms(250);
/// The longest moment.
const LONGEST_PAUSE: Millis = Millis::from_ms(5_000);

/// The user's choice of what a failed store means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreError {
    /// The caller gets the error.
    Throw,
    /// The call is admitted.
    Allow,
    /// The call is denied.
    Deny,
    /// A store in this process decides until the shared one answers again.
    Local,
}

impl OnStoreError {
    /// The choice of that name in the options.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "throw" => Some(Self::Throw),
            "allow" => Some(Self::Allow),
            "deny" => Some(Self::Deny),
            "local" => Some(Self::Local),
            _ => None,
        }
    }
}

impl OnStoreError {
    /// Its name in the options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throw => "throw",
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Local => "local",
        }
    }
}

/// How a call to the store went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It failed, or answered nonsense.
    Store,
    /// It did not answer in time.
    Timeout,
    /// It answers, but this key or promise is not for it: a lost race, a record that is not ours.
    Call,
}

/// What to do instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The user's choice.
    pub action: OnStoreError,
    /// When asking again may help; zero when the call is admitted.
    pub retry_after: Millis,
}

/// Watches one store for one caller: a circuit breaker and the user's choice.
#[derive(Clone, Debug)]
pub struct Guard {
    on_store_error: OnStoreError,
    failures: u32,
    pause: Millis,
    closed_until: Option<Timestamp>,
    probing: bool,
}

impl Guard {
    /// A guard that lets calls through until the store fails.
    #[must_use]
    pub const fn new(on_store_error: OnStoreError) -> Self {
        Self { on_store_error, failures: 0, pause: FIRST_PAUSE, closed_until: None, probing: false }
    }

    /// Whether to ask the store now. While it is left alone, one call in each moment is let through to
    /// find out whether it answers again.
    pub fn ask(&mut self, now: Timestamp) -> bool {
        match self.closed_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.closed_until = Some(now.plus(self.pause));
                self.probing = true;
                true
            }
        }
    }

    /// How long the store is left alone from now on.
    #[must_use]
    pub fn closed_for(&self, now: Timestamp) -> Millis {
        self.closed_until.map_or(Millis::ZERO, |until| until.since(now))
    }

    /// The store answered.
    pub const fn answered(&mut self) {
        (self.failures, self.pause) = (0, FIRST_PAUSE);
        (self.closed_until, self.probing) = (None, false);
    }

    /// The store failed.
    pub fn failed(&mut self, failure: Failure, now: Timestamp) -> Verdict {
        if failure == Failure::Call {
            self.answered();
            return self.verdict(now);
        }
        self.failures = self.failures.saturating_add(1);
        // Of the calls that were under way when the store was given up, each fails for the same reason.
        let known = self.closed_until.is_some() && !self.probing;
        if self.failures >= FAILURES_TO_OPEN && !known {
            self.probing = false;
            self.closed_until = Some(now.plus(self.pause));
            self.pause = self.pause.plus(self.pause).min(LONGEST_PAUSE);
        }
        self.verdict(now)
    }

    /// What to do for a call that the store was not asked about.
    #[must_use]
    pub fn verdict(&self, now: Timestamp) -> Verdict {
        let left = self.closed_until.map_or(FIRST_PAUSE, |until| until.since(now));
        let retry_after = match self.on_store_error {
            OnStoreError::Allow => Millis::ZERO,
            _ => left.max(FIRST_PAUSE),
        };
        Verdict { action: self.on_store_error, retry_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_ms(1_000_000);

    fn at(ms: u64) -> Timestamp {
        T0.plus(Millis::from_ms(ms))
    }

    #[test]
    fn a_store_that_keeps_failing_is_left_alone_and_probed() {
        let mut guard = Guard::new(OnStoreError::Deny);
        for _ in 0..4 {
            assert!(guard.ask(T0));
            guard.failed(Failure::Store, T0);
        }
        assert!(guard.ask(T0), "four failures are not enough");
        guard.failed(Failure::Timeout, T0);
        assert!(!guard.ask(at(249)));
        assert!(guard.ask(at(250)), "one probe");
        assert!(!guard.ask(at(250)), "and only one");
        guard.failed(Failure::Store, at(250));
        assert!(!guard.ask(at(749)), "a failed probe doubles the pause");
        assert!(guard.ask(at(750)));
        guard.answered();
        assert!(guard.ask(at(750)) && guard.ask(at(750)), "an answer ends it");
    }

    #[test]
    fn calls_that_were_under_way_make_no_moment_longer() {
        let mut guard = Guard::new(OnStoreError::Deny);
        for _ in 0..100 {
            assert!(guard.ask(T0));
        }
        for late in 0..100 {
            guard.failed(Failure::Timeout, at(late));
        }
        assert!(!guard.ask(at(253)));
        assert!(guard.ask(at(254)), "250 ms after the fifth failure");
        guard.failed(Failure::Timeout, at(300));
        assert!(!guard.ask(at(799)));
        assert!(guard.ask(at(800)), "500 ms after the failed probe");
    }

    #[test]
    fn a_failure_of_the_call_alone_says_nothing_against_the_store() {
        let mut guard = Guard::new(OnStoreError::Throw);
        for _ in 0..20 {
            guard.failed(Failure::Call, T0);
        }
        assert!(guard.ask(T0));
    }

    #[test]
    fn the_wait_is_finite_and_zero_when_admitted() {
        let allow = Guard::new(OnStoreError::Allow).failed(Failure::Store, T0);
        assert_eq!(allow.retry_after, Millis::ZERO);
        let deny = Guard::new(OnStoreError::Deny).failed(Failure::Store, T0);
        assert_eq!(deny.retry_after, FIRST_PAUSE);
    }
}
