//! What is told and asked in numbers, and what in objects.

use serde::Serialize;
use wasm_bindgen::JsValue;

use crate::burst::Observation;
use crate::dedup::MessageReply;
use crate::host::{millis, number, timestamp, whole};
use crate::limit::{Decision, Reason, Share, State};

/// A decision's numbers, the reason first, and after them what a tier may decide by.
pub(super) fn share_told(share: &Share) -> Vec<f64> {
    let mut numbers = decision_told(&share.decision).to_vec();
    numbers.extend([
        number(share.granted),
        number(share.span.as_ms()),
        number(share.holds_for.as_ms()),
        number(share.state.level),
        number(share.state.before),
        number(share.state.at.as_ms()),
        number(share.now.as_ms()),
    ]);
    numbers
}

/// What `share_told` told.
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

/// A decision's numbers, the reason first.
pub(super) fn decision_told(decision: &Decision) -> [f64; 6] {
    let [decided_by, limit, remaining, retry_after, reset_after] = told(decision);
    [f64::from(decision.reason as u8), decided_by, limit, remaining, retry_after, reset_after]
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageTold {
    status: &'static str,
    retry_after_ms: f64,
    result: Option<Box<str>>,
}

pub(super) fn message_told(reply: MessageReply) -> JsValue {
    let (mut retry_after_ms, mut stored) = (0.0, None);
    let status = match reply {
        MessageReply::Flag(true) => "yes",
        MessageReply::Flag(false) => "no",
        MessageReply::Absent => "absent",
        MessageReply::Fresh => "fresh",
        MessageReply::Mismatch => "mismatch",
        MessageReply::InProgress { retry_after } => {
            retry_after_ms = number(retry_after.as_ms());
            "in-progress"
        }
        MessageReply::Duplicate { result } => {
            stored = result;
            "duplicate"
        }
    };
    let told = MessageTold { status, retry_after_ms, result: stored };
    serde_wasm_bindgen::to_value(&told).unwrap_or(JsValue::UNDEFINED)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObservationTold {
    fired: bool,
    count: f64,
    window_ends_in_ms: f64,
    replay: bool,
}

pub(super) fn observation_told(observation: &Observation) -> JsValue {
    let told = ObservationTold {
        fired: observation.fired,
        count: number(observation.count),
        window_ends_in_ms: number(observation.window_ends_in.as_ms()),
        replay: observation.replay,
    };
    serde_wasm_bindgen::to_value(&told).unwrap_or(JsValue::UNDEFINED)
}
