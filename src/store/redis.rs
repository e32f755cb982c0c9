//! Redis and Valkey: operations as the script's arguments, its replies as answers. The script beside this
//! file runs the same steps in Lua; a client that sends and receives is the host's.

use alloc::string::String;
use alloc::vec::Vec;

use crate::burst::{BurstPolicy, Observation, Trigger};
use crate::dedup::{MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::limit::{Decision, Delta, Limit, Limits, Reason, Shape, Share, State};
use crate::op::{Op, Reply};
use crate::text::push_numbers;
use crate::time::{MAX_SAFE, Millis, Timestamp};

/// The script. `KEYS` are the keys of a batch in order; `ARGV` is the caller's clock (empty: the server's),
/// then the [`runs`] of the operations, each [`encode`]d.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/step.lua"));

/// The script's SHA-1, by which EVALSHA knows it.
pub const SHA: &str = include_str!(concat!(env!("OUT_DIR"), "/step.sha1"));

/// The words of one operation.
#[must_use]
pub fn encode(op: &Op<'_>) -> String {
    match op {
        Op::Consume { limits, cost } => format!("C;{cost};{}", limits_text(limits)),
        Op::Peek { limits, cost } => format!("P;{cost};{}", limits_text(limits)),
        Op::Refund { limits, cost } => format!("R;{cost};{}", limits_text(limits)),
        Op::Block { duration } => format!("B;{}", duration.as_ms()),
        Op::Unblock => "U;".into(),
        Op::Reset { limits } => format!("X;;{}", limits_text(limits)),
        Op::Reserve { limits, cost, units } => {
            format!("V;{cost};{};{units}", limits_text(limits))
        }
        Op::Add { limits, delta, cost } => {
            format!(
                "A;{cost};{};{}",
                limits_text(limits),
                delta.as_ref().map_or(String::new(), delta_text)
            )
        }
        Op::GiveBack { limits, delta } => {
            format!("Y;;{};{}", limits_text(limits), delta_text(delta))
        }
        Op::Message(op) => message_text(op),
        Op::Observe { policy, weight, nonce } => burst_text(policy, *weight, *nonce),
        Op::Increment { window } => format!("I;{}", window.as_ms()),
        Op::Has => message_text(&MessageOp::Look),
        Op::Set { ttl } => message_text(&MessageOp::Put { ttl: *ttl }),
        Op::SetIfNotExists { ttl } => message_text(&MessageOp::First { ttl: *ttl }),
        Op::Clear => "Z;".into(),
    }
}

pub(crate) fn limits_text(limits: &Limits) -> String {
    let mut text = String::new();
    for limit in limits {
        if !text.is_empty() {
            text.push('|');
        }
        push_limit(&mut text, limit);
    }
    text
}

fn delta_text(delta: &Delta) -> String {
    let Delta { node, seq, units, span } = delta;
    format!("{node},{seq},{units},{}", span.as_ms())
}

fn push_limit(text: &mut String, limit: &Limit) {
    text.push_str(limit.name().as_str());
    match limit.shape() {
        Shape::Bucket(b) => {
            text.push_str("=b,");
            push_numbers(text, &[b.rate(), b.window_ms(), b.burst()]);
        }
        Shape::Fixed(f) => {
            text.push_str("=f,");
            push_numbers(text, &[f.limit(), f.window_ms()]);
        }
        Shape::Sliding(s) => {
            text.push_str("=s,");
            push_numbers(text, &[s.limit(), s.window_ms()]);
        }
    }
}

fn message_text(op: &MessageOp) -> String {
    let text = |tag: &Option<Tag>| tag.as_ref().map_or(String::new(), |tag| tag.as_str().into());
    match op {
        MessageOp::First { ttl } => format!("F;{}", ttl.as_ms()),
        MessageOp::Put { ttl } => format!("S;{}", ttl.as_ms()),
        MessageOp::Look => "L;".into(),
        MessageOp::Claim { token, lease, payload } => {
            format!("K;{};{};{}", token.as_str(), lease.as_ms(), text(payload))
        }
        MessageOp::Renew { token, lease, payload } => {
            format!("W;{};{};{}", token.as_str(), lease.as_ms(), text(payload))
        }
        MessageOp::Commit { token, ttl, result, payload } => {
            let result = result.as_deref().unwrap_or_default();
            format!("D;{};{};{};{result}", token.as_str(), ttl.as_ms(), text(payload))
        }
        MessageOp::Release { token } => format!("E;{}", token.as_str()),
        MessageOp::Forget => "G;".into(),
    }
}

fn burst_text(policy: &BurstPolicy, weight: u64, nonce: Option<&Tag>) -> String {
    let trigger = if policy.trigger() == Trigger::Tumbling { 't' } else { 's' };
    let nonce = nonce.map_or("", Tag::as_str);
    let (threshold, window) = (policy.threshold(), policy.window().as_ms());
    format!("O;{trigger};{threshold};{window};{};{weight};{nonce}", policy.cooldown().as_ms())
}

/// The arguments of operations in order: those that are the same travel as one.
#[must_use]
pub fn runs(ops: &[String]) -> Vec<String> {
    let same = ops.chunk_by(|one, next| one == next);
    same.filter_map(|run| Some(format!("{};{}", run.len(), run.first()?))).collect()
}

/// The answers that the script's reply stands for, in the order of the operations. `reply` is the text that
/// the script answered, or the list of them. Of each operation it is what the server said, or
/// [`Error::Nonsense`] for what the script does not say.
///
/// # Errors
/// [`Error::Nonsense`] for what is no reply to so many operations.
pub fn decode(ops: &[Op<'_>], reply: &[String]) -> Result<Vec<Answer>, Error<String>> {
    let (packed, texts) = reply.split_first().ok_or(NONSENSE)?;
    let told: Vec<&str> = packed.split(';').collect();
    if told.len() != ops.len() {
        return Err(NONSENSE);
    }
    let mut texts = texts.iter();
    Ok(ops.iter().zip(told).map(|(op, told)| answer(op, told, &mut texts)).collect())
}

/// The answer to one operation of a batch.
pub type Answer = Result<Reply, Error<String>>;

const NONSENSE: Error<String> = Error::Nonsense("not a reply of the script");

fn answer<'a>(op: &Op<'_>, told: &str, texts: &mut impl Iterator<Item = &'a String>) -> Answer {
    if told == "!" {
        return Err(match texts.next().ok_or(NONSENSE)?.as_str() {
            said if said == "corrupt" || said.starts_with("WRONGTYPE") => Error::Corrupt,
            "too many limits" => Error::Unsupported("more limits on one key than a record holds"),
            said => Error::Store(said.into()),
        });
    }
    let numbers = numbers(told).ok_or(NONSENSE)?;
    let reply = match op {
        // What was charged is not whole, and what would be admitted leaves something.
        Op::Consume { limits, .. } => decision(limits, numbers)
            .filter(|decision| !decision.allowed() || decision.reset_after > Millis::ZERO)
            .map(Reply::Decision),
        Op::Peek { limits, .. } => decision(limits, numbers)
            .filter(|decision| !decision.allowed() || decision.remaining > 0)
            .map(Reply::Decision),
        Op::Reserve { limits, .. } | Op::Add { limits, .. } => {
            share(limits, numbers).map(Reply::Share)
        }
        Op::Message(_) | Op::Has | Op::Set { .. } | Op::SetIfNotExists { .. } => {
            message(numbers, texts).map(Reply::Message)
        }
        Op::Observe { .. } => observation(numbers).map(Reply::Observation),
        Op::Increment { .. } => hit(numbers).map(Reply::Decision),
        // No reply is empty.
        _ => (numbers == DONE).then_some(Reply::Done),
    };
    reply.ok_or(NONSENSE)
}

/// The numbers of one reply; those that are left out are 0.
type Numbers = [u64; 12];

const DONE: Numbers = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn numbers(told: &str) -> Option<Numbers> {
    let mut numbers = Numbers::default();
    for (at, part) in told.split_terminator(',').enumerate() {
        *numbers.get_mut(at)? = part.parse().ok()?;
    }
    Some(numbers)
}

fn decision(limits: &Limits, numbers: Numbers) -> Option<Decision> {
    let [remaining, reset_after, retry_after, reason, decided_by, ..] = numbers;
    let reason = match reason {
        0 => Reason::Ok,
        1 => Reason::Limited,
        2 => Reason::Never,
        3 => Reason::Blocked,
        _ => return None,
    };
    let decided_by = usize::try_from(decided_by).ok()?;
    let limit = limits.iter().nth(decided_by)?.capacity();
    (remaining <= limit).then_some(Decision {
        reason,
        decided_by,
        limit,
        remaining,
        retry_after: (reason != Reason::Never).then_some(Millis::from_ms(retry_after)),
        reset_after: Millis::from_ms(reset_after),
    })
}

/// A decision, and after it what a tier may decide by.
fn share(limits: &Limits, numbers: Numbers) -> Option<Share> {
    let [.., granted, span, holds_for, level, before, at, now] = numbers;
    let state = State { level, before, at: Timestamp::from_ms(at) };
    let decision = decision(limits, numbers)?;
    (now > 0).then_some(Share {
        decision,
        granted,
        span: Timestamp::from_ms(span),
        holds_for: Millis::from_ms(holds_for),
        state,
        now: Timestamp::from_ms(now),
    })
}

/// A hit is what is missing from a limit that nobody reaches.
fn hit([count, reset_at, now, ..]: Numbers) -> Option<Decision> {
    (count > 0).then_some(Decision {
        reason: Reason::Ok,
        decided_by: 0,
        limit: MAX_SAFE,
        remaining: MAX_SAFE.saturating_sub(count),
        retry_after: Some(Millis::ZERO),
        reset_after: Millis::from_ms(reset_at.saturating_sub(now)),
    })
}

fn message<'a>(
    [status, wait, ..]: Numbers,
    texts: &mut impl Iterator<Item = &'a String>,
) -> Option<MessageReply> {
    Some(match status {
        1 => MessageReply::Flag(true),
        2 => MessageReply::Flag(false),
        3 => MessageReply::Absent,
        4 => MessageReply::Fresh,
        5 => MessageReply::Mismatch,
        6 => MessageReply::InProgress { retry_after: Millis::from_ms(wait) },
        7 => {
            let result = texts.next()?.as_str();
            MessageReply::Duplicate { result: (!result.is_empty()).then(|| result.into()) }
        }
        _ => return None,
    })
}

fn observation([count, window_ends_in, fired, replay, ..]: Numbers) -> Option<Observation> {
    (count > 0 || replay == 1).then_some(Observation {
        fired: fired == 1,
        count,
        window_ends_in: Millis::from_ms(window_ends_in),
        replay: replay == 1,
    })
}
