//! One shard of a store that keeps its rows itself and runs the steps beside them: a Durable Object, whichever
//! language its class is written in.
//!
//! The wire. A batch is text: a line with its version and the number of shards that the caller counts on, then
//! a line for each operation: the key, a tab, the [`words`](super::redis::encode). The reply is lines, too: the
//! texts of the Redis script's reply. No key, word or result holds a tab or a line's end.
//!
//! ```text
//! 1;64
//! tg:l:user:42<tab>C;1;default=b,1,1000,10
//! ```
//!
//! Shard `i` of `n` is the object named `n/i`, with `i` as [`of`] says; a batch is posted to its path `/`. 200 is
//! a reply, 400 not a batch, 409 another number of shards than the object's own setting (`TIDEGATE_SHARDS`; without
//! it the Rust class has 64, and the class for JavaScript Workers takes what its caller counts on), 500 rows that
//! cannot be reached, 503 a setting that is no whole number from 1 to 1024 in plain digits. A reply has 8 MiB of results
//! at most; an operation whose result does not fit any more is refused. `/tally` answers the [`Tally`]'s numbers and the object's start, with spaces between them.
//!
//! Another number is other objects, so whoever has no setting to go by asks first: the object named `shards`, with
//! the number in question posted to its path `/shards`. The answer is the deployment's number: that of the setting,
//! or the first that was ever asked about.
//!
//! A Worker that offers its store to others takes the same lines at `/v1/steps`, for whichever shards they are, with
//! `1;` above them. The reply is that to one batch.
//!
//! The rows: key, record (the text of [`op::encode`]), and from when on the row may go. In SQLite:
//!
//! ```sql
//! CREATE TABLE records (key TEXT PRIMARY KEY, record TEXT NOT NULL, over_at INTEGER NOT NULL) WITHOUT ROWID
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::op::{self, OwnedOp, Reply, StepError, Write};
use crate::store::wire::{self, Replies};
use crate::text::cut_text;
use crate::time::{Clock, Timestamp};

/// The rows of one shard. Nothing in it waits: a batch is one critical section.
pub trait Rows {
    /// Why the rows cannot be reached.
    type Error;

    /// The record under the key.
    ///
    /// # Errors
    /// The host's.
    fn get(&self, key: &str) -> Result<Option<String>, Self::Error>;

    /// Keeps a record. Answers false where a new row finds no room.
    ///
    /// # Errors
    /// The host's.
    fn put(
        &self,
        key: &str,
        record: &str,
        over_at: Timestamp,
        new: bool,
    ) -> Result<bool, Self::Error>;

    /// Removes the row.
    ///
    /// # Errors
    /// The host's.
    fn delete(&self, key: &str) -> Result<(), Self::Error>;
}

/// Why a whole batch has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchError<E> {
    /// It is not a batch of this version.
    Unreadable,
    /// Its caller counts on another number of shards, and would look for this key elsewhere.
    Shards,
    /// The rows cannot be reached.
    Rows(E),
}

/// What a shard has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Decisions of `consume`, by [`Reason`](crate::Reason).
    pub decisions: [u64; 4],
    /// Ids that were found done.
    pub duplicates: u64,
    /// Alarms that fired.
    pub bursts: u64,
    /// Operations that were refused.
    pub errors: u64,
}

/// The shard that a key belongs to: FNV-1a, 32 bits, over the key's bytes.
///
/// ```
/// assert_eq!(tidegate::shard::of("tg:l:user:42", 64), tidegate::shard::of("tg:l:user:42", 64));
/// assert!(tidegate::shard::of("tg:l:user:42", 3) < 3);
/// ```
#[must_use]
pub fn of(key: &str, shards: u32) -> u32 {
    let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    key.bytes().fold(0x811c_9dc5, fold).checked_rem(shards).unwrap_or(0)
}

/// The text of a batch for a shard, of keys and [`words`](super::redis::encode).
#[must_use]
pub fn batch<'a>(shards: u32, calls: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("1;{shards}");
    for (key, words) in calls {
        text.extend(["\n", key, "\t", words]);
    }
    text
}

/// What a batch says: behind its version, and the keys with their operations.
#[must_use]
pub fn read(text: &str) -> Option<(&str, Vec<(&str, OwnedOp)>)> {
    let (head, body) = cut_text(text, b'\n')?;
    Some((head.strip_prefix("1;")?, body.split('\n').map(call).collect::<Option<_>>()?))
}

/// Runs a batch on the rows and answers the text of its reply; `shards` is the deployment's number, where the object
/// knows it. What cannot be read is refused before anything is written; where the rows fail in the middle, the host
/// undoes what was written.
///
/// # Errors
/// [`BatchError`] when there is no reply to any of it.
pub fn run<R: Rows>(
    rows: &R,
    shards: Option<u32>,
    text: &str,
    now: Timestamp,
    tally: &mut Tally,
) -> Result<String, BatchError<R::Error>> {
    let (counted, calls) = read(text).ok_or(BatchError::Unreadable)?;
    let counted = op::number(counted).ok_or(BatchError::Unreadable)?;
    if shards.is_some_and(|shards| u64::from(shards) != counted) {
        return Err(BatchError::Shards);
    }
    let mut replies = Replies::default();
    for (key, op) in calls {
        let answer = one(rows, key, &op, now).map_err(BatchError::Rows)?;
        tally.count(&op, &answer);
        replies.push(&answer);
    }
    Ok(replies.into_text())
}

fn call(line: &str) -> Option<(&str, OwnedOp)> {
    let (key, words) = cut_text(line, b'\t')?;
    Some((key, wire::read(words)?))
}

/// What one operation is answered; outside, that the rows cannot be reached.
fn one<R: Rows>(
    rows: &R,
    key: &str,
    op: &OwnedOp,
    now: Timestamp,
) -> Result<Result<Reply, Error<&'static str>>, R::Error> {
    let text = rows.get(key)?;
    let Ok(record) = text.as_deref().map(op::decode).transpose() else {
        return Ok(Err(Error::Corrupt));
    };
    let (reply, write) = match op::step(record, &op.as_op(), now, Clock::Store) {
        Ok(stepped) => stepped,
        Err(StepError::WrongKind) => return Ok(Err(Error::Corrupt)),
        Err(StepError::Unsupported) => return Ok(Err(Error::Unsupported("this operation"))),
    };
    match write {
        Write::Keep => {}
        Write::Delete if text.is_none() => {}
        Write::Delete => rows.delete(key)?,
        Write::Put(record, ttl) => {
            let Some(next) = op::encode(&record) else {
                return Ok(Err(Error::Unsupported("so many limits on one key")));
            };
            if !rows.put(key, &next, now.plus(ttl), text.is_none())? {
                return Ok(Err(Error::Store("the shard is full")));
            }
        }
    }
    Ok(Ok(reply))
}

impl Tally {
    /// The numbers in the order in which `/tally` tells them.
    #[must_use]
    pub const fn numbers(&self) -> [u64; 7] {
        let Self { decisions: [ok, limited, never, blocked], duplicates, bursts, errors } = *self;
        [ok, limited, never, blocked, duplicates, bursts, errors]
    }

    fn count<E>(&mut self, op: &OwnedOp, answer: &Result<Reply, Error<E>>) {
        let counter = match (op, answer) {
            (OwnedOp::Consume(..), Ok(Reply::Decision(decision))) => {
                self.decisions.get_mut(decision.reason as usize)
            }
            (_, Ok(Reply::Message(reply))) if reply.is_duplicate() => Some(&mut self.duplicates),
            (_, Ok(Reply::Observation(seen))) if seen.fired && !seen.replay => {
                Some(&mut self.bursts)
            }
            (_, Err(_)) => Some(&mut self.errors),
            _ => None,
        };
        if let Some(counter) = counter {
            *counter = counter.saturating_add(1);
        }
    }
}
