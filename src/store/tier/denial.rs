//! "Not before then": what answers the repeats of a call that the shared store denied.

use super::{Ask, TRUSTED_FOR};
use crate::limit::{Decision, Reason};
use crate::time::Timestamp;

/// A denial, as long as it is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Denial {
    cost: u64,
    decision: Decision,
    until: Timestamp,
    heard: Timestamp,
}

impl Denial {
    /// The store decided after it was asked and before it was heard: a wait that began when it was asked
    /// denies nothing too long.
    pub(super) fn new(ask: &Ask, decision: Decision, heard: Timestamp) -> Self {
        let wait = decision.retry_after.unwrap_or(TRUSTED_FOR).min(TRUSTED_FOR);
        let cost = ask.question.cost().max(1);
        Self { cost, decision, until: ask.holds_until(wait), heard }
    }

    pub(super) const fn until(&self) -> Timestamp {
        self.until
    }

    /// The denial again, if the call costs at least as much. One that costs more is told the same wait,
    /// which may be too short for it, and then hears a longer one.
    pub(super) fn answer(&self, cost: u64, now: Timestamp) -> Option<Decision> {
        let never = self.decision.reason == Reason::Never;
        let same = cost >= self.cost && (never || cost <= self.decision.limit);
        if !same || now >= self.until {
            return None;
        }
        let passed = now.since(self.heard);
        Some(Decision {
            retry_after: self.decision.retry_after.map(|wait| wait.minus(passed)),
            reset_after: self.decision.reset_after.minus(passed),
            ..self.decision
        })
    }
}
