//! What the property tests share: how many operations they run, and those on ids.

#![allow(dead_code)]

use proptest::prelude::*;
use proptest::test_runner::Config;
use tidegate::Millis;
use tidegate::dedup::{MessageOp, Tag};

/// Operations of a long run when `TIDEGATE_SOAK` is 1; any larger number is itself.
const SOAK: u64 = 1_000_000;

/// How many operations a long run was asked for.
pub(crate) fn soak() -> Option<u64> {
    let asked: u64 = std::env::var("TIDEGATE_SOAK").ok()?.trim().parse().ok()?;
    match asked {
        0 => None,
        1 => Some(SOAK),
        more => Some(more),
    }
}

/// Enough cases for `operations` operations of at least `each` per case, or for those of a long run.
/// A failing case is printed in its smallest form, and leaves no file behind.
pub(crate) fn config(operations: u64, each: u64) -> Config {
    let operations = soak().unwrap_or(operations);
    Config {
        cases: u32::try_from(operations.div_ceil(each)).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 100_000,
        ..Config::default()
    }
}

/// One of a few, so that they meet.
pub(crate) fn tag() -> impl Strategy<Value = Tag> {
    (0..4).prop_filter_map("a tag", |number| Tag::new(&format!("token-{number}")))
}

/// Operations on an id, with such results.
pub(crate) fn message(
    results: impl Strategy<Value = Box<str>> + 'static,
) -> impl Strategy<Value = MessageOp> {
    let span = || (1_u64..500).prop_map(Millis::from_ms);
    let payload = || prop::option::of(tag());
    let held = move || (tag(), span(), payload());
    prop_oneof![
        span().prop_map(|ttl| MessageOp::First { ttl }),
        span().prop_map(|ttl| MessageOp::Put { ttl }),
        Just(MessageOp::Look),
        held().prop_map(|(token, lease, payload)| MessageOp::Claim { token, lease, payload }),
        held().prop_map(|(token, lease, payload)| MessageOp::Renew { token, lease, payload }),
        (held(), prop::option::of(results)).prop_map(|((token, ttl, payload), result)| {
            MessageOp::Commit { token, ttl, result, payload }
        }),
        tag().prop_map(|token| MessageOp::Release { token }),
        Just(MessageOp::Forget),
    ]
}
