//! The calls of the HTTP API: what each body says, which operation that is, and what is answered.

use super::answer;
use super::fault::Fault;
use super::fields::{DURATION, Fields, duration_of};
use super::limits::Named;
use super::store::Step;
use crate::burst::{BurstPolicy, Trigger};
use crate::dedup::{MessageOp, Tag};
use crate::json::Json;
use crate::op::{OwnedOp, Reply};
use crate::store::{Key, Kind};
use crate::time::Millis;

const DEFAULT_PREFIX: &str = "tg";
const DEFAULT_LEASE: Millis = Millis::from_ms(30_000);

/// The paths below `/v1/` that name a call.
pub(crate) const PATHS: [&str; 16] = [
    "consume", "peek", "refund", "reset", "block", "unblock", "first", "has", "claim", "look",
    "renew", "commit", "release", "forget", "observe", "batch",
];

/// One operation on one key, and how its reply is told.
pub(crate) struct Call {
    pub(crate) step: Step,
    pub(crate) tell: Tell,
}

/// How a reply is told.
pub(crate) enum Tell {
    /// A decision, with the names of its limits.
    Decision(Vec<String>),
    /// That it is done.
    Done,
    /// A flag of that name.
    Flag(&'static str),
    /// Whether the id is done.
    Has,
    /// What is known of an id; with a token when it is the caller's now.
    Claim(Option<Tag>),
    /// An observation.
    Observation,
}

impl Call {
    /// The call of a path, as a token that is bound to a prefix may make it.
    pub(crate) fn read(
        path: &str,
        mut fields: Fields<'_>,
        bound: Option<&str>,
    ) -> Result<Self, Fault> {
        let asked = fields.text_or_none("prefix")?;
        let prefix = asked.unwrap_or_else(|| bound.unwrap_or(DEFAULT_PREFIX).into());
        let key = |kind, text: &[u8]| Key::from_wtf8(&prefix, kind, text);
        let call = match path {
            "consume" | "peek" | "refund" | "reset" | "block" | "unblock" => {
                let text = fields.text("key")?;
                limited(path, &mut fields, key(Kind::Limit, &text))?
            }
            "observe" => {
                let identity = Tag::hash(&fields.text("identity")?);
                observed(&mut fields, key(Kind::Burst, identity.as_str().as_bytes()))?
            }
            _ => {
                let id = fields.text("id")?;
                message(path, &mut fields, key(Kind::Message, &id))?
            }
        };
        fields.end()?;
        match bound {
            Some(bound) if !call.step.key.is_under(bound) => Err(Fault::outside(bound, "prefix")),
            _ => Ok(call),
        }
    }

    /// The body of the answer.
    pub(crate) fn told(&self, reply: &Reply) -> Result<String, Fault> {
        answer::body(&self.tell, reply).ok_or_else(|| Fault::store("the store answered nonsense"))
    }
}

fn limited(path: &str, fields: &mut Fields<'_>, key: Key) -> Result<Call, Fault> {
    let Named { limits, names, .. } = Named::take(fields, "limit", &fields.name("limit"))?;
    let decision = Tell::Decision(names);
    let (op, tell) = match path {
        "consume" => (OwnedOp::Consume(limits, fields.units("cost")?), decision),
        "peek" => (OwnedOp::Peek(limits, fields.units("cost")?), decision),
        "refund" => (OwnedOp::Refund(limits, fields.units("cost")?), Tell::Done),
        "reset" => (OwnedOp::Reset(limits), Tell::Done),
        "unblock" => (OwnedOp::Unblock, Tell::Done),
        _ => (OwnedOp::Block(fields.duration("duration")?), Tell::Done),
    };
    Ok(Call { step: Step { key, op }, tell })
}

fn message(path: &str, fields: &mut Fields<'_>, key: Key) -> Result<Call, Fault> {
    let (op, tell) = match path {
        "first" => (MessageOp::First { ttl: fields.duration("ttl")? }, Tell::Flag("first")),
        "has" => (MessageOp::Look, Tell::Has),
        "look" => (MessageOp::Look, Tell::Claim(None)),
        "forget" => (MessageOp::Forget, Tell::Done),
        "claim" => return claim(fields, key),
        "renew" => {
            let (token, lease) = (fields.tag("token")?, fields.duration("lease")?);
            let payload = fields.hashed("payload")?;
            (MessageOp::Renew { token, lease, payload }, Tell::Flag("ok"))
        }
        "commit" => {
            let (token, ttl) = (fields.tag("token")?, fields.duration("ttl")?);
            let (payload, result) = (fields.hashed("payload")?, fields.result("result")?);
            (MessageOp::Commit { token, ttl, result, payload }, Tell::Flag("ok"))
        }
        _ => (MessageOp::Release { token: fields.tag("token")? }, Tell::Flag("ok")),
    };
    Ok(Call { step: Step { key, op: OwnedOp::Message(op) }, tell })
}

/// A claim names its attempt: by the caller's token, which can then ask again after a lost answer, or by one
/// that is made here.
fn claim(fields: &mut Fields<'_>, key: Key) -> Result<Call, Fault> {
    // How long a result is kept is said again when there is one.
    fields.duration("ttl")?;
    let lease = fields.duration_or("lease", DEFAULT_LEASE)?;
    let payload = fields.hashed("payload")?;
    let given = |json: Json<'_>| Tag::new(core::str::from_utf8(&json.text()?).ok()?);
    let expected = "1 to 64 characters of A-Z, a-z, 0-9, - and _";
    let token = fields.read("token", expected, given)?.unwrap_or_else(super::js::new_tag);
    let op = MessageOp::Claim { token: token.clone(), lease, payload };
    let step = Step { key, op: OwnedOp::Message(op) };
    Ok(Call { step, tell: Tell::Claim(Some(token)) })
}

fn observed(fields: &mut Fields<'_>, key: Key) -> Result<Call, Fault> {
    let (threshold, window) = (fields.count("threshold")?, fields.duration("window")?);
    // Zero is the default, too.
    let cooldown = |json: Json<'_>| match json.whole() {
        Some(0) => Some(Millis::ZERO),
        _ => duration_of(json),
    };
    let cooldown = fields.read("cooldown", DURATION, cooldown)?.unwrap_or(Millis::ZERO);
    let trigger = |json: Json<'_>| match json.as_str() {
        "\"tumbling\"" => Some(Trigger::Tumbling),
        "\"sliding\"" => Some(Trigger::Sliding),
        _ => None,
    };
    let trigger = fields.read("trigger", "\"tumbling\" or \"sliding\"", trigger)?;
    let policy = BurstPolicy::new(threshold, window, cooldown, trigger.unwrap_or_default())
        .map_err(|error| Fault::policy(error.option, &error.expected))?;
    let (weight, nonce) = (fields.units("weight")?, fields.text_or_none("nonce")?);
    let nonce = nonce.map(|nonce| Tag::hash(&nonce));
    let step = Step { key, op: OwnedOp::Observe(policy, weight, nonce) };
    Ok(Call { step, tell: Tell::Observation })
}
