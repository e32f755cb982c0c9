//! What a step answers.

use crate::time::Millis;

/// Why a call was admitted or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Admitted and charged.
    Ok = 0,
    /// The budget is used up; [`Decision::retry_after`] says when this same cost fits.
    Limited = 1,
    /// The cost is above capacity: no wait will help.
    Never = 2,
    /// A block is in force.
    Blocked = 3,
}

/// One decision over all limits of a Limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Why it was admitted or denied.
    pub reason: Reason,
    /// Which of the Limiter's limits decided: the one that denied, else the one with least remaining.
    pub decided_by: usize,
    /// Capacity of that limit.
    pub limit: u64,
    /// How many calls of cost 1 would be admitted after this one.
    pub remaining: u64,
    /// The smallest wait after which this same call is admitted; `None` when none helps.
    pub retry_after: Option<Millis>,
    /// The wait until the budget is whole again and a block is over.
    pub reset_after: Millis,
}

impl Decision {
    /// Whether the call was admitted.
    #[must_use]
    pub const fn allowed(&self) -> bool {
        matches!(self.reason, Reason::Ok)
    }
}
