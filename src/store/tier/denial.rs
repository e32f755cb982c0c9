//! "Not before then": what answers the repeats of calls that the shared store denied.

use alloc::vec::Vec;

use super::{Ask, TRUSTED_FOR};
use crate::limit::Decision;
use crate::time::Timestamp;

/// Denials of so many different costs are remembered per key.
const MOST_COSTS: usize = 4;

/// A denial, as long as it is believed.
#[derive(Clone, Copy, Debug)]
struct Denial {
    cost: u64,
    decision: Decision,
    until: Timestamp,
    heard: Timestamp,
}

/// What was denied of one key. A call of another cost is told another wait, perhaps by another limit, so
/// that each cost is remembered by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Denials(Vec<Denial>);

impl Denials {
    /// The store decided after it was asked and before it was heard: a wait that began when it was asked
    /// denies nothing too long. A question of no cost was nobody's call.
    pub(super) fn note(&mut self, ask: &Ask, decision: Decision, heard: Timestamp) {
        let cost = ask.question.cost();
        if cost == 0 {
            return;
        }
        let wait = decision.retry_after.unwrap_or(TRUSTED_FOR).min(TRUSTED_FOR);
        self.0.retain(|denial| denial.cost != cost);
        if self.0.len() >= MOST_COSTS {
            self.0.drain(..1);
        }
        self.0.push(Denial { cost, decision, until: ask.holds_until(wait), heard });
    }

    pub(super) fn until(&self) -> Timestamp {
        self.0.iter().map(|denial| denial.until).max().unwrap_or_default()
    }

    /// The denial of the same call again, with what is left of its wait.
    pub(super) fn answer(&self, cost: u64, now: Timestamp) -> Option<Decision> {
        let Denial { decision, heard, .. } =
            self.0.iter().find(|denial| denial.cost == cost && now < denial.until)?;
        let passed = now.since(*heard);
        Some(Decision {
            retry_after: decision.retry_after.map(|wait| wait.minus(passed)),
            reset_after: decision.reset_after.minus(passed),
            ..*decision
        })
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
