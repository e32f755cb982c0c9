//! What the property tests share: how many operations they run.

#![allow(dead_code)]

use proptest::test_runner::Config;

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
