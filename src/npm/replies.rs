//! What is told in numbers.

#[cfg(bare)]
use super::exchange::EXCHANGE;
use super::numbers::number;
#[cfg(feature = "npm-stores")]
use super::numbers::{millis, timestamp, whole};
#[cfg(bare)]
use crate::burst::Observation;
#[cfg(bare)]
use crate::dedup::MessageReply;
use crate::limit::{Decision, Share};
#[cfg(feature = "npm-stores")]
use crate::limit::{Reason, State};

/// A decision's numbers, the reason first, and after them what a tier may decide by.
#[cfg(bare)]
pub(super) fn share_told(share: &Share) -> [f64; 13] {
    let [decided_by, limit, remaining, retry_after, reset_after] = told(&share.decision);
    [
        f64::from(share.decision.reason as u8),
        decided_by,
        limit,
        remaining,
        retry_after,
        reset_after,
        number(share.granted),
        number(share.span.as_ms()),
        number(share.holds_for.as_ms()),
        number(share.state.level),
        number(share.state.before),
        number(share.state.at.as_ms()),
        number(share.now.as_ms()),
    ]
}

/// What `share_told` told.
#[cfg(feature = "npm-stores")]
pub(super) fn share_from(numbers: &[f64]) -> Option<Share> {
    let (decision, told) = numbers.split_at_checked(6)?;
    let &[granted, span, holds_for, level, before, at, now] = told else { return None };
    Some(Share {
        decision: decision_from(decision)?,
        granted: whole(granted),
        span: timestamp(span),
        holds_for: millis(holds_for),
        state: State { level: whole(level), before: whole(before), at: timestamp(at) },
        now: timestamp(now),
    })
}

#[cfg(feature = "npm-stores")]
pub(super) fn decision_from(numbers: &[f64]) -> Option<Decision> {
    let &[reason, decided_by, limit, remaining, retry_after, reset_after] = numbers else {
        return None;
    };
    let reason = match whole(reason) {
        0 => Reason::Ok,
        1 => Reason::Limited,
        2 => Reason::Never,
        _ => Reason::Blocked,
    };
    Some(Decision {
        reason,
        decided_by: usize::try_from(whole(decided_by)).unwrap_or_default(),
        limit: whole(limit),
        remaining: whole(remaining),
        retry_after: (reason != Reason::Never).then(|| millis(retry_after)),
        reset_after: millis(reset_after),
    })
}

/// A decision's numbers but for the reason.
#[inline(always)]
pub(super) fn told(decision: &Decision) -> [f64; 5] {
    let retry_after = decision.retry_after.map_or(f64::INFINITY, |wait| number(wait.as_ms()));
    let reset_after = number(decision.reset_after.as_ms());
    let decided_by = u32::try_from(decision.decided_by).unwrap_or(0);
    [
        f64::from(decided_by),
        number(decision.limit),
        number(decision.remaining),
        retry_after,
        reset_after,
    ]
}

/// The number of a reply's status; the wait, and the length of the result (-1: none), are in the block.
#[cfg(bare)]
pub(super) fn message_told(reply: MessageReply) -> i32 {
    EXCHANGE.on(|exchange| {
        let (mut wait, mut stored) = (0.0, -1);
        let status = match reply {
            MessageReply::Flag(true) => 0,
            MessageReply::Flag(false) => 1,
            MessageReply::Absent => 2,
            MessageReply::Fresh => 3,
            MessageReply::Mismatch => 4,
            MessageReply::InProgress { retry_after } => {
                wait = number(retry_after.as_ms());
                5
            }
            MessageReply::Duplicate { result } => {
                stored = result.map_or(-1, |result| exchange.answer(result.into()));
                6
            }
        };
        let [first, second, ..] = &mut exchange.numbers;
        (*first, *second) = (wait, f64::from(stored));
        status
    })
}

/// Whether it fired, the count, when the window ends, and whether it is told again.
#[cfg(bare)]
pub(super) fn observation_told(observation: &Observation) -> [f64; 4] {
    let Observation { fired, count, window_ends_in, replay } = *observation;
    [f64::from(fired), number(count), number(window_ends_in.as_ms()), f64::from(replay)]
}
