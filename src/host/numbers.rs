//! Numbers on their way from and to JavaScript.

use crate::time::{Millis, Timestamp};

/// A number that JavaScript has checked to be a time.
#[inline(always)]
pub(crate) const fn timestamp(ms: f64) -> Timestamp {
    Timestamp::from_ms(whole(ms))
}

/// A number that JavaScript has checked to be a span of time.
#[inline(always)]
pub(crate) const fn millis(ms: f64) -> Millis {
    Millis::from_ms(whole(ms))
}

/// A number that JavaScript has checked to be whole and not negative; the fraction of a clock's reading is dropped.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both saturate")]
#[inline(always)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

/// A number below 2^53 as JavaScript has it.
#[expect(clippy::cast_precision_loss, reason = "everything that crosses is below 2^53")]
#[inline(always)]
pub(crate) const fn number(value: u64) -> f64 {
    value as f64
}

/// As the engine keeps it in place: signed. Larger ones come back as they were.
#[cfg(bare)]
#[inline(always)]
pub(crate) const fn code(number: u32) -> i32 {
    number.cast_signed()
}

/// A length as it is answered.
#[cfg(bare)]
pub(crate) fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
