//! Deduplication: which ids have been seen, which are being worked on, and what came of them.
//!
//! `first` is a set-if-absent. `claim` → `commit` or `release` is for work that must neither run twice
//! nor be lost: a claim carries a lease, after which another may take it, and a token, without which
//! nobody can commit or release what has become somebody else's.

use alloc::boxed::Box;

use crate::time::{Millis, Timestamp};

/// The most bytes of a committed result.
pub const MAX_RESULT_BYTES: usize = 64 * 1024;

/// Short printable ASCII without separators: who claims, or what is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(Box<str>);

impl Tag {
    /// The tag of that text: 1 to 64 characters of `[A-Za-z0-9_-]`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(plain);
        fits.then(|| Self(text.into()))
    }

    /// The tag of any bytes: their SHA-256, 128 bits of it.
    #[must_use]
    pub fn hash(bytes: &[u8]) -> Self {
        Self(crate::digest::short(bytes).into())
    }

    /// As [`hash`](Self::hash), by HMAC under a secret: what is hashed cannot be found by trying.
    #[must_use]
    pub fn keyed_hash(secret: &[u8], bytes: &[u8]) -> Self {
        Self(crate::digest::keyed(secret, bytes).into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is known of one id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Somebody works on it.
    Claimed {
        /// Who.
        token: Tag,
        /// From when on another may take it.
        lease_until: Timestamp,
        /// The payload that came with the id, hashed.
        payload: Option<Tag>,
    },
    /// It is done.
    Done {
        /// Until when it is remembered.
        until: Timestamp,
        /// Who did it; none after `first`.
        token: Option<Tag>,
        /// The payload that came with the id, hashed.
        payload: Option<Tag>,
        /// JSON, in ASCII.
        result: Option<Box<str>>,
    },
}

/// An operation on one id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOp {
    /// True for exactly one caller; the id is then done.
    First {
        /// How long the id is remembered.
        ttl: Millis,
    },
    /// The id is done, whatever was known of it: nobody's claim is honoured any more.
    Put {
        /// How long the id is remembered.
        ttl: Millis,
    },
    /// What a claim would find. Changes nothing.
    Look,
    /// Takes the id, unless somebody has it or it is done.
    Claim {
        /// Names the attempt: the same token claims again after a lost reply.
        token: Tag,
        /// How long before another may take it.
        lease: Millis,
        /// Compared with the earlier one, where both are given.
        payload: Option<Tag>,
    },
    /// Makes a held lease last from now.
    Renew {
        /// Who holds it.
        token: Tag,
        /// How long before another may take it.
        lease: Millis,
        /// Kept with the id.
        payload: Option<Tag>,
    },
    /// The work is done; remembers its result.
    Commit {
        /// Who did it.
        token: Tag,
        /// How long the id is remembered.
        ttl: Millis,
        /// JSON, in ASCII.
        result: Option<Box<str>>,
        /// Kept with the id.
        payload: Option<Tag>,
    },
    /// The work failed; the id has not been seen.
    Release {
        /// Who gives it up.
        token: Tag,
    },
    /// Forgets the id, whatever is known of it.
    Forget,
}

/// What an operation on an id answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageReply {
    /// `first`: whether this caller is it. `renew`, `commit`, `release`: false when the lease was lost to another.
    Flag(bool),
    /// `look`: nothing is known of the id.
    Absent,
    /// `claim`: it is the caller's.
    Fresh,
    /// Somebody works on it.
    InProgress {
        /// When another may take it.
        retry_after: Millis,
    },
    /// It is done.
    Duplicate {
        /// JSON, in ASCII; none after `first`.
        result: Option<Box<str>>,
    },
    /// The id came with another payload before.
    Mismatch,
}

impl MessageReply {
    /// Whether the id was found done.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

impl Message {
    /// When, left alone, nothing of it counts any more.
    #[must_use]
    pub const fn over_at(&self) -> Timestamp {
        match self {
            Self::Claimed { lease_until, .. } => *lease_until,
            Self::Done { until, .. } => *until,
        }
    }

    /// Characters of the stored result.
    #[must_use]
    pub fn result_bytes(&self) -> usize {
        match self {
            Self::Done { result: Some(result), .. } => result.len(),
            _ => 0,
        }
    }
}

/// Runs one operation. The slot holds what is known of the id, and afterwards what is to be remembered;
/// true when that changed.
pub fn step(slot: &mut Option<Message>, op: &MessageOp, now: Timestamp) -> (MessageReply, bool) {
    // Over by value, whether or not the store has dropped it.
    if slot.as_ref().is_some_and(|message| now >= message.over_at()) {
        *slot = None;
    }
    match op {
        MessageOp::First { ttl } => first(slot, *ttl, now),
        MessageOp::Put { ttl } => flag(true, || *slot = Some(seen(*ttl, now))),
        MessageOp::Look => (look(slot, None, now).unwrap_or(MessageReply::Absent), false),
        MessageOp::Claim { token, lease, payload } => claim(slot, token, *lease, payload, now),
        MessageOp::Renew { token, lease, payload } => {
            let renewed = Message::Claimed {
                token: token.clone(),
                lease_until: now.plus(*lease),
                payload: payload.clone(),
            };
            let done = matches!(slot, Some(Message::Done { .. }));
            flag(!done && held(slot, token, now), || *slot = Some(renewed))
        }
        MessageOp::Commit { token, ttl, result, payload } => {
            if committed_by(slot, token) {
                return (MessageReply::Flag(true), false);
            }
            let done = Message::Done {
                until: now.plus(*ttl),
                token: Some(token.clone()),
                payload: payload.clone(),
                result: result.clone(),
            };
            flag(held(slot, token, now), || *slot = Some(done))
        }
        MessageOp::Release { token } => {
            let had = slot.is_some();
            let ours = held(slot, token, now);
            let (reply, changed) = flag(ours, || *slot = None);
            (reply, changed && had)
        }
        MessageOp::Forget => {
            let had = slot.take().is_some();
            (MessageReply::Flag(had), had)
        }
    }
}

fn flag(yes: bool, change: impl FnOnce()) -> (MessageReply, bool) {
    if yes {
        change();
    }
    (MessageReply::Flag(yes), yes)
}

fn first(slot: &mut Option<Message>, ttl: Millis, now: Timestamp) -> (MessageReply, bool) {
    let free = look(slot, None, now).is_none();
    flag(free, || *slot = Some(seen(ttl, now)))
}

/// An id that is done, without anybody's claim.
const fn seen(ttl: Millis, now: Timestamp) -> Message {
    Message::Done { until: now.plus(ttl), token: None, payload: None, result: None }
}

/// What stands in the way of a claim; `None` when nothing does.
fn look(slot: &Option<Message>, payload: Option<&Tag>, now: Timestamp) -> Option<MessageReply> {
    let message = slot.as_ref().filter(|message| now < message.over_at())?;
    let (Message::Claimed { payload: known, .. } | Message::Done { payload: known, .. }) = message;
    if let (Some(known), Some(payload)) = (known, payload)
        && known != payload
    {
        return Some(MessageReply::Mismatch);
    }
    Some(match message {
        Message::Claimed { lease_until, .. } => {
            MessageReply::InProgress { retry_after: lease_until.since(now) }
        }
        Message::Done { result, .. } => MessageReply::Duplicate { result: result.clone() },
    })
}

fn claim(
    slot: &mut Option<Message>,
    token: &Tag,
    lease: Millis,
    payload: &Option<Tag>,
    now: Timestamp,
) -> (MessageReply, bool) {
    let again = matches!(slot, Some(Message::Claimed { token: holder, .. }) if holder == token);
    match look(slot, payload.as_ref(), now) {
        Some(obstacle) if !again || obstacle == MessageReply::Mismatch => (obstacle, false),
        _ => {
            let lease_until = now.plus(lease);
            *slot = Some(Message::Claimed {
                token: token.clone(),
                lease_until,
                payload: payload.clone(),
            });
            (MessageReply::Fresh, true)
        }
    }
}

/// Whether the token's holder may still decide about the id: it holds the claim, even past its lease as
/// long as nobody took it, or nothing is known of the id any more.
fn held(slot: &Option<Message>, token: &Tag, now: Timestamp) -> bool {
    match slot {
        Some(Message::Claimed { token: holder, .. }) => holder == token,
        Some(Message::Done { until, .. }) => now >= *until,
        None => true,
    }
}

/// Whether this very token has committed already: a retry after a lost reply.
fn committed_by(slot: &Option<Message>, token: &Tag) -> bool {
    matches!(slot, Some(Message::Done { token: Some(by), .. }) if by == token)
}
