//! Redis and Valkey: operations as the script's arguments, its replies as answers. The script beside this
//! file runs the same steps in Lua; a client that sends and receives is the host's.

use crate::burst::{BurstPolicy, Observation, Trigger};
use crate::dedup::{MessageOp, MessageReply, Tag};
use crate::error::Error;
use crate::limit::{Decision, Limit, Limits, Reason, Shape};
use crate::op::{Op, Reply};
use crate::time::Millis;

/// The script. `KEYS` are the keys of a batch in order; `ARGV` is the caller's clock (empty: the server's),
/// then one [`encode`]d operation per key.
pub const SCRIPT: &str = include_str!("redis/step.lua");

/// A reply of the server, as far as the script's replies need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Value>),
}

/// The argument of one operation; `None` for one that the script does not run.
#[must_use]
pub fn encode(op: &Op<'_>) -> Option<String> {
    Some(match op {
        Op::Consume { limits, cost } => format!("C;{cost};{}", limits_text(limits)),
        Op::Peek { limits, cost } => format!("P;{cost};{}", limits_text(limits)),
        Op::Refund { limits, cost } => format!("R;{cost};{}", limits_text(limits)),
        Op::Block { duration } => format!("B;{}", duration.as_ms()),
        Op::Unblock => "U;".into(),
        Op::Reset { limits } => format!("X;;{}", limits_text(limits)),
        Op::Message(op) => message_text(op),
        Op::Observe { policy, weight, nonce } => burst_text(policy, *weight, *nonce),
        _ => return None,
    })
}

pub(crate) fn limits_text(limits: &Limits) -> String {
    let texts: Vec<String> = limits.iter().map(limit_text).collect();
    texts.join("|")
}

fn limit_text(limit: &Limit) -> String {
    let name = limit.name().as_str();
    match limit.shape() {
        Shape::Bucket(b) => format!("{name}=b,{},{},{}", b.rate(), b.window_ms(), b.burst()),
        Shape::Fixed(f) => format!("{name}=f,{},{}", f.limit(), f.window_ms()),
        Shape::Sliding(s) => format!("{name}=s,{},{}", s.limit(), s.window_ms()),
    }
}

pub(crate) fn message_text(op: &MessageOp) -> String {
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

pub(crate) fn burst_text(policy: &BurstPolicy, weight: u64, nonce: Option<&Tag>) -> String {
    let trigger = if policy.trigger() == Trigger::Tumbling { 't' } else { 's' };
    let nonce = nonce.map_or("", Tag::as_str);
    let (threshold, window) = (policy.threshold(), policy.window().as_ms());
    format!("O;{trigger};{threshold};{window};{};{weight};{nonce}", policy.cooldown().as_ms())
}

/// The answer that a reply of the script stands for.
///
/// # Errors
/// What the server said of this operation, or [`Error::Nonsense`] for what the script does not reply.
pub fn decode(op: &Op<'_>, reply: &Value) -> Result<Reply, Error<String>> {
    let Value::List(parts) = reply else { return Err(NONSENSE) };
    if let [Value::Text(word), Value::Text(said)] = parts.as_slice()
        && word == "error"
    {
        return Err(match said.as_str() {
            "corrupt" => Error::Corrupt,
            "too many limits" => Error::Unsupported("more limits on one key than a record holds"),
            said => Error::Store(said.into()),
        });
    }
    let reply = match op {
        Op::Consume { .. } | Op::Peek { .. } => decision(parts).map(Reply::Decision),
        Op::Message(_) => message(parts).map(Reply::Message),
        Op::Observe { .. } => observation(parts).map(Reply::Observation),
        _ => Some(Reply::Done),
    };
    reply.ok_or(NONSENSE)
}

const NONSENSE: Error<String> = Error::Nonsense("not a reply of the script");

fn numbers<const N: usize>(parts: &[Value]) -> Option<[i64; N]> {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    parts.iter().map(number).collect::<Option<Vec<i64>>>()?.try_into().ok()
}

fn millis(number: i64) -> Option<Millis> {
    u64::try_from(number).ok().map(Millis::from_ms)
}

fn decision(parts: &[Value]) -> Option<Decision> {
    let [reason, decided_by, limit, remaining, retry_after, reset_after] = numbers(parts)?;
    let reason = match reason {
        0 => Reason::Ok,
        1 => Reason::Limited,
        2 => Reason::Never,
        3 => Reason::Blocked,
        _ => return None,
    };
    let retry_after = if reason == Reason::Never { None } else { Some(millis(retry_after)?) };
    Some(Decision {
        reason,
        decided_by: usize::try_from(decided_by).ok()?,
        limit: u64::try_from(limit).ok()?,
        remaining: u64::try_from(remaining).ok()?,
        retry_after,
        reset_after: millis(reset_after)?,
    })
}

fn message(parts: &[Value]) -> Option<MessageReply> {
    let Value::Text(word) = parts.first()? else { return None };
    Some(match (word.as_str(), parts.get(1)) {
        ("yes", None) => MessageReply::Flag(true),
        ("no", None) => MessageReply::Flag(false),
        ("absent", None) => MessageReply::Absent,
        ("fresh", None) => MessageReply::Fresh,
        ("mismatch", None) => MessageReply::Mismatch,
        ("in-progress", Some(Value::Int(wait))) => {
            MessageReply::InProgress { retry_after: millis(*wait)? }
        }
        ("duplicate", Some(Value::Text(result))) => {
            MessageReply::Duplicate { result: (!result.is_empty()).then(|| result.as_str().into()) }
        }
        _ => return None,
    })
}

fn observation(parts: &[Value]) -> Option<Observation> {
    let [fired, count, window_ends_in, replay] = numbers(parts)?;
    let count = u64::try_from(count).ok()?;
    Some(Observation {
        fired: fired == 1,
        count,
        window_ends_in: millis(window_ends_in)?,
        replay: replay == 1,
    })
}
