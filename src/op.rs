//! The closed list of operations, the record they work on, and the one step that runs them.
//!
//! A store is whatever makes `step` atomic on a key. The list is the same on every wire.

mod codec;

pub use codec::{Corrupt, decode, encode};

use crate::burst::{self, Burst, BurstPolicy, Observation};
use crate::dedup::{self, Message, MessageOp, MessageReply, Tag};
use crate::limit::{Decision, LimitRecord, Limits};
use crate::time::{Clock, Millis, Timestamp};

/// What a store holds under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Limits and a block.
    Limits(LimitRecord),
    /// A message id.
    Message(Message),
    /// An identity under watch.
    Burst(Burst),
}

impl Record {
    /// From when on its key may vanish without changing any decision.
    #[must_use]
    pub fn over_at(&self) -> Timestamp {
        match self {
            Self::Limits(limits) => limits.whole_at(),
            Self::Message(message) => message.over_at(),
            Self::Burst(burst) => burst.over_at(),
        }
    }
}

/// An operation on one key.
#[derive(Clone, Debug)]
pub enum Op<'a> {
    /// Decides and charges.
    Consume {
        /// The limits, checked as one.
        limits: &'a Limits,
        /// Units.
        cost: u64,
    },
    /// Decides and changes nothing.
    Peek {
        /// The limits, checked as one.
        limits: &'a Limits,
        /// Units.
        cost: u64,
    },
    /// Gives units back.
    Refund {
        /// The limits that were charged.
        limits: &'a Limits,
        /// Units.
        cost: u64,
    },
    /// Denies every call for a while.
    Block {
        /// How long.
        duration: Millis,
    },
    /// Ends a block.
    Unblock,
    /// Forgets these limits and the block.
    Reset {
        /// The limits to forget.
        limits: &'a Limits,
    },
    /// Takes a share of the budget for a tier to spend.
    Reserve {
        /// The limit.
        limits: &'a Limits,
        /// The largest share.
        units: u64,
    },
    /// Returns what a tier did not spend.
    GiveBack {
        /// The limit.
        limits: &'a Limits,
        /// Units.
        units: u64,
    },
    /// Adds what a tier has admitted already; the id makes it count once.
    Add {
        /// The limit.
        limits: &'a Limits,
        /// Units.
        units: u64,
        /// Names the delta.
        id: &'a Tag,
    },
    /// First, look, claim, renew, commit, release, forget.
    Message(&'a MessageOp),
    /// Counts an observation and fires once.
    Observe {
        /// What makes an alarm.
        policy: &'a BurstPolicy,
        /// Observations that this one stands for.
        weight: u64,
        /// Names the attempt: the same nonce is told its firing again.
        nonce: Option<&'a Tag>,
    },
    /// Arkos' five: counts a hit in a fixed window, whatever the count.
    Increment {
        /// The window.
        window: Millis,
    },
    /// Arkos' five: whether the key is there.
    Has,
    /// Arkos' five: puts the key there.
    Set {
        /// How long it stays.
        ttl: Millis,
    },
    /// Arkos' five: puts the key there unless it is.
    SetIfNotExists {
        /// How long it stays.
        ttl: Millis,
    },
    /// Arkos' five: removes the key, and those that begin with it and a colon.
    Clear,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Consume, peek.
    Decision(Decision),
    /// Operations on message ids.
    Message(MessageReply),
    /// Observe.
    Observation(Observation),
    /// The operation is done; there is nothing to tell.
    Done,
}

/// Why a step could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The key holds a record of another kind.
    WrongKind,
    /// The operation is not one of this store's.
    Unsupported,
}

/// What the store is to do with the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Nothing.
    Keep,
    /// Store this record for at least that long.
    Put(Record, Millis),
    /// Remove the key.
    Delete,
}

/// Runs one operation on what a key holds: pure, synchronous, and the same everywhere.
///
/// # Errors
/// [`StepError`] when the record is of another kind, or the operation belongs to another store.
pub fn step(
    record: Option<Record>,
    op: &Op<'_>,
    now: Timestamp,
    clock: Clock,
) -> Result<(Reply, Write), StepError> {
    match op {
        Op::Consume { .. }
        | Op::Peek { .. }
        | Op::Refund { .. }
        | Op::Block { .. }
        | Op::Unblock
        | Op::Reset { .. } => limits_step(record, op, now, clock),
        Op::Message(op) => {
            let mut slot = match record {
                Some(Record::Message(message)) => Some(message),
                None => None,
                Some(_) => return Err(StepError::WrongKind),
            };
            let (reply, changed) = dedup::step(&mut slot, op, now);
            Ok((Reply::Message(reply), write(slot.map(Record::Message), changed, now)))
        }
        Op::Observe { policy, weight, nonce } => {
            let mut slot = match record {
                Some(Record::Burst(burst)) => Some(burst),
                None => None,
                Some(_) => return Err(StepError::WrongKind),
            };
            let observation = burst::observe(&mut slot, policy, *weight, *nonce, now, clock);
            let write = write(slot.map(Record::Burst), !observation.replay, now);
            Ok((Reply::Observation(observation), write))
        }
        Op::Reserve { .. }
        | Op::GiveBack { .. }
        | Op::Add { .. }
        | Op::Increment { .. }
        | Op::Has
        | Op::Set { .. }
        | Op::SetIfNotExists { .. }
        | Op::Clear => Err(StepError::Unsupported),
    }
}

fn limits_step(
    record: Option<Record>,
    op: &Op<'_>,
    now: Timestamp,
    clock: Clock,
) -> Result<(Reply, Write), StepError> {
    let mut limits_record = match record {
        Some(Record::Limits(limits)) => limits,
        None => LimitRecord::default(),
        Some(_) => return Err(StepError::WrongKind),
    };
    let (reply, changed) = match op {
        Op::Consume { limits, cost } => {
            let (decision, changed) = limits_record.consume(limits, *cost, now, clock);
            (Reply::Decision(decision), changed)
        }
        Op::Peek { limits, cost } => {
            (Reply::Decision(limits_record.peek(limits, *cost, now, clock)), false)
        }
        Op::Refund { limits, cost } => {
            (Reply::Done, limits_record.refund(limits, *cost, now, clock))
        }
        Op::Block { duration } => {
            limits_record.block(*duration, now, clock);
            (Reply::Done, true)
        }
        Op::Unblock => (Reply::Done, limits_record.unblock()),
        Op::Reset { limits } => {
            limits_record.reset(limits);
            (Reply::Done, true)
        }
        _ => return Err(StepError::Unsupported),
    };
    Ok((reply, write(Some(Record::Limits(limits_record)), changed, now)))
}

/// Admits a message: consume, then claim when admitted, else look. The two records are of two keys; where
/// those share a slot it is one step, elsewhere two.
///
/// # Errors
/// As [`step`].
pub fn admit(
    limit_record: Option<Record>,
    message_record: Option<Record>,
    limits: (&Limits, u64),
    claim: &MessageOp,
    now: Timestamp,
    clock: Clock,
) -> Result<(Decision, MessageReply, Write, Write), StepError> {
    let consume = Op::Consume { limits: limits.0, cost: limits.1 };
    let (Reply::Decision(decision), charged) = step(limit_record, &consume, now, clock)? else {
        return Err(StepError::WrongKind);
    };
    let op = if decision.allowed() { claim } else { &MessageOp::Look };
    let (Reply::Message(reply), claimed) = step(message_record, &Op::Message(op), now, clock)?
    else {
        return Err(StepError::WrongKind);
    };
    Ok((decision, reply, charged, claimed))
}

/// What to write: nothing that counts is a key that goes.
fn write(record: Option<Record>, changed: bool, now: Timestamp) -> Write {
    if !changed {
        return Write::Keep;
    }
    match record {
        Some(record) if record.over_at() > now => {
            let ttl = record.over_at().since(now);
            Write::Put(record, ttl)
        }
        _ => Write::Delete,
    }
}
