//! The other end of the wire that [`redis`](super::redis) speaks: operations read from their words, answers
//! written as the script writes them. Whoever runs steps where the records are, reads and writes this.

use crate::burst::{BurstPolicy, Observation, Trigger};
use crate::dedup::{MAX_RESULT_BYTES, MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::limit::{Decision, Delta, FixedWindow, LeakyBucket, Limit, LimitName, Limits, Reason};
use crate::limit::{MAX_LIMITS, Shape, Share, SlidingWindow};
use crate::op::{OwnedOp, Reply, number, numbers};
use crate::text::{cut_text, parts, push_number};
use crate::time::{MAX_SAFE, Millis, Timestamp};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The operation of these words; `None` for anything that [`encode`](super::redis::encode) does not write.
#[must_use]
pub fn read(words: &str) -> Option<OwnedOp> {
    let (letter, rest) = cut_text(words, b';')?;
    match letter {
        "C" | "P" | "R" => limits_op(letter, rest),
        "B" => span(rest).map(OwnedOp::Block),
        "U" => rest.is_empty().then_some(OwnedOp::Unblock),
        "X" => limits(rest.strip_prefix(';')?).map(OwnedOp::Reset),
        "V" | "A" | "Y" => tier_op(letter, rest),
        "O" => observe(rest).map(|(policy, weight, nonce)| OwnedOp::Observe(policy, weight, nonce)),
        _ => message_op(letter, rest).map(OwnedOp::Message),
    }
}

/// The operation on an id of these words.
#[must_use]
pub fn message(words: &str) -> Option<MessageOp> {
    let (letter, rest) = cut_text(words, b';')?;
    message_op(letter, rest)
}

/// The observation of these words: its policy, weight and nonce.
#[must_use]
pub fn observation(words: &str) -> Option<(BurstPolicy, u64, Option<Tag>)> {
    observe(words.strip_prefix("O;")?)
}

fn limits_op(letter: &str, rest: &str) -> Option<OwnedOp> {
    let (cost, rest) = cut_text(rest, b';')?;
    let (cost, limits) = (count(cost)?, limits(rest)?);
    Some(match letter {
        "C" => OwnedOp::Consume(limits, cost),
        "P" => OwnedOp::Peek(limits, cost),
        _ => OwnedOp::Refund(limits, cost),
    })
}

/// What a tier asks: of one limit, which the step sees to.
fn tier_op(letter: &str, rest: &str) -> Option<OwnedOp> {
    let ([cost, text, last], 3) = parts(rest, b';') else { return None };
    let limits = limits(text)?;
    Some(match letter {
        "V" => OwnedOp::Reserve(limits, number(cost)?, number(last)?),
        "A" if last.is_empty() => OwnedOp::Add(limits, None, number(cost)?),
        "A" => OwnedOp::Add(limits, Some(delta(last)?), number(cost)?),
        _ => cost.is_empty().then_some(OwnedOp::GiveBack(limits, delta(last)?))?,
    })
}

fn delta(text: &str) -> Option<Delta> {
    let [node, seq, units, span] = numbers(text)?;
    Some(Delta { node, seq, units, span: Timestamp::from_ms(span) })
}

/// The limits of these words.
#[must_use]
pub fn limits(text: &str) -> Option<Limits> {
    let (parts, count) = parts::<{ MAX_LIMITS }>(text, b'|');
    let mut limits = Vec::with_capacity(count);
    for part in parts.iter().take(count) {
        limits.push(limit(part)?);
    }
    Limits::new(limits).ok()
}

fn limit(text: &str) -> Option<Limit> {
    let (name, shape) = cut_text(text, b'=')?;
    let (algorithm, rest) = cut_text(shape, b',')?;
    let shape = match algorithm {
        "b" => {
            let [rate, window, burst] = numbers(rest)?;
            let bucket = LeakyBucket::new(rate, Millis::option(window)?, burst)?;
            (bucket.window_ms() == window).then_some(Shape::Bucket(bucket))?
        }
        "f" => {
            let [limit, window] = numbers(rest)?;
            Shape::Fixed(FixedWindow::new(limit, Millis::option(window)?)?)
        }
        "s" => {
            let [limit, window] = numbers(rest)?;
            Shape::Sliding(SlidingWindow::new(limit, Millis::option(window)?)?)
        }
        _ => return None,
    };
    Some(Limit::restored(LimitName::parse(name)?, shape))
}

fn message_op(letter: &str, rest: &str) -> Option<MessageOp> {
    let ([first, second, payload, result], count) = parts(rest, b';');
    let wanted = match letter {
        "F" | "S" | "L" | "E" | "G" => 1,
        "K" | "W" => 3,
        "D" => 4,
        _ => return None,
    };
    if count != wanted {
        return None;
    }
    Some(match letter {
        "F" => MessageOp::First { ttl: span(first)? },
        "S" => MessageOp::Put { ttl: span(first)? },
        "L" => first.is_empty().then_some(MessageOp::Look)?,
        "G" => first.is_empty().then_some(MessageOp::Forget)?,
        "E" => MessageOp::Release { token: Tag::new(first)? },
        _ => {
            let (token, span, payload) = (Tag::new(first)?, span(second)?, tag_or_none(payload)?);
            match letter {
                "K" => MessageOp::Claim { token, lease: span, payload },
                "W" => MessageOp::Renew { token, lease: span, payload },
                _ => {
                    MessageOp::Commit { token, ttl: span, result: result_or_none(result)?, payload }
                }
            }
        }
    })
}

fn observe(rest: &str) -> Option<(BurstPolicy, u64, Option<Tag>)> {
    let ([trigger, threshold, window, cooldown, weight, nonce], 6) = parts(rest, b';') else {
        return None;
    };
    let trigger = match trigger {
        "t" => Trigger::Tumbling,
        "s" => Trigger::Sliding,
        _ => return None,
    };
    let (threshold, window) = (count(threshold)?, span(window)?);
    let cooldown = Millis::from_ms(number(cooldown)?);
    let policy = BurstPolicy::new(threshold, window, cooldown, trigger).ok()?;
    Some((policy, count(weight)?, tag_or_none(nonce)?))
}

/// A positive whole number.
fn count(text: &str) -> Option<u64> {
    number(text).filter(|count| *count > 0)
}

fn span(text: &str) -> Option<Millis> {
    Millis::option(number(text)?)
}

fn tag_or_none(text: &str) -> Option<Option<Tag>> {
    if text.is_empty() { Some(None) } else { Tag::new(text).map(Some) }
}

/// JSON in printable ASCII, no longer than what a record takes.
fn result_or_none(text: &str) -> Option<Option<Box<str>>> {
    let printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let fits = text.len() <= MAX_RESULT_BYTES.saturating_mul(6);
    (printable && fits).then(|| (!text.is_empty()).then(|| text.into()))
}

/// The answers to a batch, packed as the script packs them: the numbers of all operations in one text, and
/// the texts that belong to some of them.
#[derive(Debug, Default)]
pub struct Replies {
    packed: String,
    texts: Vec<String>,
    count: usize,
    /// Bytes of results so far.
    bytes: usize,
}

/// The bytes of results that a reply may have: those who read and write it have 128 MB for everything.
pub const MOST_RESULT_BYTES: usize = 8 * 1_024 * 1_024;

impl Replies {
    /// Adds what one operation is answered.
    pub fn push<E: AsRef<str>>(&mut self, answer: &Result<Reply, Error<E>>) {
        if self.count > 0 {
            self.packed.push(';');
        }
        self.count = self.count.saturating_add(1);
        match answer {
            Ok(Reply::Decision(decision)) => self.numbers(&decided(decision)),
            Ok(Reply::Share(share)) => self.share(share),
            Ok(Reply::Message(reply)) => self.message(reply),
            Ok(Reply::Observation(observation)) => self.observation(observation),
            Ok(Reply::Done) => self.numbers(&[1]),
            Err(error) => self.refused(refusal(error)),
        }
    }

    /// The texts, those with the numbers first.
    #[must_use]
    pub fn into_texts(self) -> Vec<String> {
        core::iter::once(self.packed).chain(self.texts).collect()
    }

    /// The texts, with line ends between them.
    pub(crate) fn into_text(self) -> String {
        let mut all = self.packed;
        for text in self.texts {
            all.push('\n');
            all.push_str(&text);
        }
        all
    }

    fn refused(&mut self, why: String) {
        self.packed.push('!');
        self.texts.push(why);
    }

    /// Whoever was to be told a result has changed nothing, and may ask for it alone.
    fn result(&mut self, result: &str) {
        let bytes = self.bytes.saturating_add(result.len());
        if bytes > MOST_RESULT_BYTES {
            return self.refused("the batch has more results than fit in a reply".into());
        }
        self.bytes = bytes;
        self.numbers(&[7]);
        self.texts.push(result.into());
    }

    fn share(&mut self, share: &Share) {
        let Share { decision, granted, span, holds_for, state, now } = share;
        let [remaining, reset_after, retry_after, reason, decided_by] = decided(decision);
        let (level, before, at) = (state.level, state.before, state.at.as_ms());
        let (span, holds_for, now) = (span.as_ms(), holds_for.as_ms(), now.as_ms());
        self.numbers(&[
            remaining,
            reset_after,
            retry_after,
            reason,
            decided_by,
            *granted,
            span,
            holds_for,
            level,
            before,
            at,
            now,
        ]);
    }

    fn message(&mut self, reply: &MessageReply) {
        match reply {
            MessageReply::Flag(true) => self.numbers(&[1]),
            MessageReply::Flag(false) => self.numbers(&[2]),
            MessageReply::Absent => self.numbers(&[3]),
            MessageReply::Fresh => self.numbers(&[4]),
            MessageReply::Mismatch => self.numbers(&[5]),
            MessageReply::InProgress { retry_after } => self.numbers(&[6, retry_after.as_ms()]),
            MessageReply::Duplicate { result } => {
                self.result(result.as_deref().unwrap_or_default());
            }
        }
    }

    fn observation(&mut self, observation: &Observation) {
        let Observation { fired, count, window_ends_in, replay } = *observation;
        self.numbers(&[count, window_ends_in.as_ms(), u64::from(fired), u64::from(replay)]);
    }

    /// Zeros at the end are left out.
    fn numbers(&mut self, numbers: &[u64]) {
        let told =
            numbers.iter().rposition(|number| *number != 0).map_or(0, |at| at.saturating_add(1));
        for (index, number) in numbers.iter().take(told).enumerate() {
            if index > 0 {
                self.packed.push(',');
            }
            push_number(&mut self.packed, *number);
        }
    }
}

/// A decision in numbers.
fn decided(decision: &Decision) -> [u64; 5] {
    let Decision { reason, decided_by, remaining, retry_after, reset_after, .. } = *decision;
    let reason = match reason {
        Reason::Ok => 0,
        Reason::Limited => 1,
        Reason::Never => 2,
        Reason::Blocked => 3,
    };
    let decided_by = u64::try_from(decided_by).unwrap_or(MAX_SAFE);
    let retry_after = retry_after.map_or(0, Millis::as_ms);
    [remaining, reset_after.as_ms(), retry_after, reason, decided_by]
}

/// Why an operation was refused, in the script's words where it has some.
fn refusal<E: AsRef<str>>(error: &Error<E>) -> String {
    let said = match error {
        Error::Corrupt => "corrupt",
        Error::Unsupported(_) => "too many limits",
        Error::Store(error) => error.as_ref(),
        Error::Nonsense(what) => what,
        Error::Full => "the store is full",
        Error::Contention => "compare-and-set lost too many times",
    };
    said.into()
}
