//! The closed list of operations, the record they work on, and the one step that runs them.
//!
//! A store is whatever makes `step` atomic on a key. The list is the same on every wire.

mod codec;
mod owned;

pub use codec::{Corrupt, decode, encode};
pub(crate) use codec::{number, numbers};
pub use owned::OwnedOp;

use crate::burst::{self, Burst, BurstPolicy, Observation};
use crate::dedup::{self, Message, MessageOp, MessageReply, Tag};
use crate::limit::{Algorithm, Decision, Delta, Limit, LimitOptions, LimitRecord, Limits, Share};
use crate::time::{Clock, MAX_SAFE, Millis, Timestamp};

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
    /// Decides and charges, and takes a share of what is left for a tier to spend.
    Reserve {
        /// The only limit.
        limits: &'a Limits,
        /// Units of the call itself; 0 for a share alone.
        cost: u64,
        /// The largest share.
        units: u64,
    },
    /// Returns what a tier did not spend.
    GiveBack {
        /// The only limit.
        limits: &'a Limits,
        /// What it did not spend.
        delta: Delta,
    },
    /// Adds what a tier has admitted already, then decides and charges.
    Add {
        /// The only limit.
        limits: &'a Limits,
        /// What it has admitted.
        delta: Option<Delta>,
        /// Units of the call itself; 0 for the delta alone.
        cost: u64,
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
    /// Arkos' five: counts a hit in a fixed window, whatever the count. The decision is that of a limit of
    /// 2^53 - 1: the count is what is missing from that.
    Increment {
        /// The window.
        window: Millis,
    },
    /// Arkos' five: whether the key is there. As [`MessageOp::Look`].
    Has,
    /// Arkos' five: puts the key there. As [`MessageOp::Put`].
    Set {
        /// How long it stays.
        ttl: Millis,
    },
    /// Arkos' five: puts the key there unless it is. As [`MessageOp::First`].
    SetIfNotExists {
        /// How long it stays.
        ttl: Millis,
    },
    /// Arkos' five: removes the key, and those that begin with it and a colon. Whoever keeps the keys
    /// does this: a step sees only one.
    Clear,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Consume, peek.
    Decision(Decision),
    /// Reserve, add.
    Share(Share),
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
        | Op::Reset { .. }
        | Op::Reserve { .. }
        | Op::GiveBack { .. }
        | Op::Add { .. } => limits_step(record, op, now, clock),
        Op::Message(op) => message_step(record, op, now),
        Op::Has => message_step(record, &MessageOp::Look, now),
        Op::Set { ttl } => message_step(record, &MessageOp::Put { ttl: *ttl }, now),
        Op::SetIfNotExists { ttl } => message_step(record, &MessageOp::First { ttl: *ttl }, now),
        Op::Increment { window } => {
            let limits = counter(*window).ok_or(StepError::Unsupported)?;
            limits_step(record, &Op::Consume { limits: &limits, cost: 1 }, now, clock)
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
        Op::Clear => Err(StepError::Unsupported),
    }
}

fn message_step(
    record: Option<Record>,
    op: &MessageOp,
    now: Timestamp,
) -> Result<(Reply, Write), StepError> {
    let mut slot = match record {
        Some(Record::Message(message)) => Some(message),
        None => None,
        Some(_) => return Err(StepError::WrongKind),
    };
    let (reply, changed) = dedup::step(&mut slot, op, now);
    Ok((Reply::Message(reply), write(slot.map(Record::Message), changed, now)))
}

/// A limit that nobody reaches, to count hits by; `None` where no limit can have that window.
fn counter(window: Millis) -> Option<Limits> {
    let algorithm = Algorithm::FixedWindow;
    let options = LimitOptions { algorithm, ..LimitOptions::new(MAX_SAFE, window) };
    Limits::new(vec![Limit::new(&options).ok()?]).ok()
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
        Op::Reserve { limits, cost, units } => {
            let (share, changed) = limits_record.reserve(limits, *cost, *units, now, clock);
            (Reply::Share(share.ok_or(StepError::Unsupported)?), changed)
        }
        Op::Add { limits, delta, cost } => {
            let (share, changed) = limits_record.add(limits, delta.as_ref(), *cost, now, clock);
            (Reply::Share(share.ok_or(StepError::Unsupported)?), changed)
        }
        Op::GiveBack { limits, delta } => {
            (Reply::Done, limits_record.give_back(limits, delta, now, clock))
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

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]
mod tests {
    use super::*;
    use crate::limit::Reason;

    /// One key, on a clock that only moves when told.
    #[derive(Default)]
    struct OneKey {
        text: Option<String>,
        now: u64,
    }

    impl OneKey {
        fn run(&mut self, op: &Op<'_>) -> Result<Reply, StepError> {
            let record = self.text.as_deref().map(|text| decode(text).expect("what was written"));
            let (reply, write) =
                step(record, op, Timestamp::from_ms(1_000_000 + self.now), Clock::Store)?;
            match write {
                Write::Keep => {}
                Write::Put(record, _) => self.text = encode(&record),
                Write::Delete => self.text = None,
            }
            Ok(reply)
        }

        fn count(&mut self, window: u64) -> (u64, u64) {
            match self.run(&Op::Increment { window: Millis::from_ms(window) }) {
                Ok(Reply::Decision(decision)) => {
                    assert_eq!(decision.reason, Reason::Ok);
                    (MAX_SAFE - decision.remaining, decision.reset_after.as_ms())
                }
                other => panic!("{other:?}"),
            }
        }

        fn message(&mut self, op: &Op<'_>) -> MessageReply {
            match self.run(op) {
                Ok(Reply::Message(reply)) => reply,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn increments_count_within_the_window_of_the_first() {
        let mut key = OneKey::default();
        assert_eq!(key.count(100), (1, 100));
        key.now = 99;
        assert_eq!(key.count(100), (2, 1));
        key.now = 100;
        assert_eq!(key.count(100), (1, 100));
        let refused = [Op::Increment { window: Millis::ZERO }, Op::Clear];
        for op in refused {
            assert_eq!(key.run(&op), Err(StepError::Unsupported));
        }
        assert_eq!(key.run(&Op::Has), Err(StepError::WrongKind));
    }

    #[test]
    fn what_is_set_is_there_for_its_time() {
        let mut key = OneKey::default();
        let ttl = |ms| Millis::from_ms(ms);
        let there = MessageReply::Duplicate { result: None };
        assert_eq!(key.message(&Op::Has), MessageReply::Absent);
        assert_eq!(key.message(&Op::SetIfNotExists { ttl: ttl(10) }), MessageReply::Flag(true));
        assert_eq!(key.message(&Op::SetIfNotExists { ttl: ttl(10) }), MessageReply::Flag(false));
        key.message(&Op::Set { ttl: ttl(20) });
        key.now = 19;
        assert_eq!(key.message(&Op::Has), there);
        key.message(&Op::Set { ttl: ttl(5) });
        key.now = 24;
        assert_eq!(key.message(&Op::Has), MessageReply::Absent);
    }

    #[test]
    fn a_put_ends_a_claim() {
        let mut key = OneKey::default();
        let token = Tag::hash(b"worker");
        let lease = Millis::from_ms(1_000);
        let claim = MessageOp::Claim { token: token.clone(), lease, payload: None };
        assert_eq!(key.message(&Op::Message(&claim)), MessageReply::Fresh);
        key.message(&Op::Set { ttl: Millis::from_ms(1_000) });
        let release = MessageOp::Release { token };
        assert_eq!(key.message(&Op::Message(&release)), MessageReply::Flag(false));
        assert_eq!(key.message(&Op::Has), MessageReply::Duplicate { result: None });
    }
}
