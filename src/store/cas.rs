//! Any database with a conditional write: read, step, write if nobody else wrote, and again if somebody did.
//!
//! What to write is decided here, synchronously; [`engine`](crate::engine) carries it.

use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;

use super::{Answer, Call, Store};
use crate::dedup::Message;
use crate::engine;
use crate::error::Error;
use crate::limit::{LimitRecord, MAX_RECORD_CHARS};
use crate::op::{self, Op, Record, Reply, StepError, Write};
use crate::time::{Clock, Millis, Timestamp};

/// How often a lost race is run again. High, because everyone who loses has seen somebody win; the
/// host's deadline ends it earlier.
pub(crate) const MAX_TRIES: usize = 256;

/// The two methods that a database has to have, and the clock it may have.
pub trait Cas {
    /// The host's own error.
    type Error;

    /// The text under the key; `None` when there is none, or it has expired.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, Error<Self::Error>>>;

    /// Writes `next`, to live at least `ttl`, if the current text equals `expected` (`None`: if there is
    /// none). Answers whether it wrote.
    fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&str>,
        next: &str,
        ttl: Millis,
    ) -> impl Future<Output = Result<bool, Error<Self::Error>>>;

    /// The time, and whose it is.
    fn now(&self) -> impl Future<Output = Result<(Timestamp, Clock), Error<Self::Error>>>;
}

/// A [`Cas`] as a [`Store`].
#[derive(Clone, Debug)]
pub struct CasStore<C>(pub C);

impl<C: Cas> Store for CasStore<C> {
    type Error = C::Error;

    async fn apply(&self, calls: &[Call<'_>]) -> Vec<Answer<C::Error>> {
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(engine::swap(&self.0, call).await);
        }
        answers
    }
}

/// A conditional write to be made, and the answer once it has been.
pub(crate) struct Plan {
    pub(crate) reply: Reply,
    pub(crate) write: Option<(String, Millis)>,
}

/// Runs the step on what the store holds.
pub(crate) fn plan<E>(
    text: Option<&str>,
    op: &Op<'_>,
    now: Timestamp,
    clock: Clock,
) -> Result<Plan, Error<E>> {
    let record = text.map(op::decode).transpose().map_err(|_| Error::Corrupt)?;
    let blank = blank(record.as_ref());
    let (reply, write) = op::step(record, op, now, clock).map_err(|error| match error {
        StepError::WrongKind => Error::Corrupt,
        StepError::Unsupported => Error::Unsupported("this operation needs another kind of store"),
    })?;
    let write = match (write, blank) {
        (Write::Keep, _) | (Write::Delete, None) => None,
        (Write::Put(record, ttl), _) => {
            let text = text_of(record)
                .ok_or(Error::Unsupported("more limits on one key than a record holds"))?;
            Some((text, ttl))
        }
        (Write::Delete, Some(blank)) => {
            Some((op::encode(&blank).unwrap_or_default(), Millis::from_ms(1)))
        }
    };
    Ok(Plan { reply, write })
}

/// The record's text, no longer than a database was promised: the tiers heard of longest ago are forgotten
/// first. A delta of theirs whose reply was lost may then count twice.
fn text_of(mut record: Record) -> Option<String> {
    loop {
        let text = op::encode(&record)?;
        if text.len() <= MAX_RECORD_CHARS {
            return Some(text);
        }
        let Record::Limits(LimitRecord { adders, .. }) = &mut record else {
            return Some(text);
        };
        let known = adders.as_mut()?;
        if known.newest.len() > 1 {
            known.newest.remove(0);
        } else {
            *adders = None;
        }
    }
}

/// What stands for "nothing" where there was something: a delete would not be conditional, and could
/// take away what another has written meanwhile.
fn blank(record: Option<&Record>) -> Option<Record> {
    match record? {
        Record::Limits(_) => Some(Record::Limits(LimitRecord::default())),
        Record::Message(_) => {
            let until = Timestamp::default();
            Some(Record::Message(Message::Done { until, token: None, payload: None, result: None }))
        }
        // An observation always leaves a count behind.
        Record::Burst(_) => None,
    }
}
