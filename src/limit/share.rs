//! Budgets that are spent from afar: a tier takes a share before it spends it and gives back what it did
//! not spend, or adds what it has admitted already.

use alloc::vec::Vec;

use super::{Decision, State};
use crate::time::{Millis, Timestamp};

/// A share is at most this part of what is left, so that shares shrink as the budget runs out.
pub const SHARES: u64 = 8;

/// How much longer than it could matter by itself a delta still counts, and its number is remembered:
/// the longest that a message may be on its way.
pub(crate) const ON_THE_WAY: Millis = Millis::from_ms(60_000);

/// So many tiers' newest numbers are remembered per key.
pub const MAX_ADDERS: usize = 64;

/// Units that a tier adds or gives back, in the window that they belong to, at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Which tier's; 32 bits.
    pub node: u64,
    /// Rises with every delta of that tier for the key. One that was seen, or an earlier one, counts nothing.
    pub seq: u64,
    /// How many.
    pub units: u64,
    /// The [`Share::span`] that they belong to.
    pub span: Timestamp,
}

/// What a tier is told of a key's only limit, to decide by for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// On the call's own cost.
    pub decision: Decision,
    /// Units charged on top, for the tier to spend.
    pub granted: u64,
    /// Names the window: its start. Bucket: when this was true.
    pub span: Timestamp,
    /// How long from `now` what is spent counts in that span.
    pub holds_for: Millis,
    /// The state, as it stands `now`.
    pub state: State,
    /// The store's time.
    pub now: Timestamp,
}

/// Which deltas have been counted on a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adders {
    /// How long they are remembered.
    pub until: Timestamp,
    /// Tiers and the newest number of each, the one that was heard of last at the end.
    pub newest: Vec<(u64, u64)>,
}

impl Adders {
    pub(super) fn has(&self, delta: &Delta) -> bool {
        self.newest.iter().any(|(node, seq)| *node == delta.node && *seq >= delta.seq)
    }

    pub(super) fn note(&mut self, delta: &Delta, until: Timestamp) {
        self.until = self.until.max(until);
        self.newest.retain(|(node, _)| *node != delta.node);
        if self.newest.len() >= MAX_ADDERS {
            self.newest = self.newest.iter().skip(1).copied().collect();
        }
        self.newest.push((delta.node, delta.seq));
    }
}
