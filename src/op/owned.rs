//! Operations that own what an [`Op`] borrows: what comes over a wire, and is kept until it is answered.

use super::Op;
use crate::burst::BurstPolicy;
use crate::dedup::{MessageOp, Tag};
use crate::limit::{Delta, Limits};
use crate::time::Millis;

/// An operation with everything that belongs to it.
#[derive(Clone, Debug)]
pub enum OwnedOp {
    /// As [`Op::Consume`].
    Consume(Limits, u64),
    /// As [`Op::Peek`].
    Peek(Limits, u64),
    /// As [`Op::Refund`].
    Refund(Limits, u64),
    /// As [`Op::Block`].
    Block(Millis),
    /// As [`Op::Unblock`].
    Unblock,
    /// As [`Op::Reset`].
    Reset(Limits),
    /// As [`Op::Reserve`]: cost, units.
    Reserve(Limits, u64, u64),
    /// As [`Op::GiveBack`].
    GiveBack(Limits, Delta),
    /// As [`Op::Add`].
    Add(Limits, Option<Delta>, u64),
    /// As [`Op::Message`].
    Message(MessageOp),
    /// As [`Op::Observe`].
    Observe(BurstPolicy, u64, Option<Tag>),
}

impl OwnedOp {
    /// The operation for a step.
    #[must_use]
    pub const fn as_op(&self) -> Op<'_> {
        match self {
            Self::Consume(limits, cost) => Op::Consume { limits, cost: *cost },
            Self::Peek(limits, cost) => Op::Peek { limits, cost: *cost },
            Self::Refund(limits, cost) => Op::Refund { limits, cost: *cost },
            Self::Block(duration) => Op::Block { duration: *duration },
            Self::Unblock => Op::Unblock,
            Self::Reset(limits) => Op::Reset { limits },
            Self::Reserve(limits, cost, units) => {
                Op::Reserve { limits, cost: *cost, units: *units }
            }
            Self::GiveBack(limits, delta) => Op::GiveBack { limits, delta: *delta },
            Self::Add(limits, delta, cost) => Op::Add { limits, delta: *delta, cost: *cost },
            Self::Message(op) => Op::Message(op),
            Self::Observe(policy, weight, nonce) => {
                Op::Observe { policy, weight: *weight, nonce: nonce.as_ref() }
            }
        }
    }
}
