//! The only time types. The crate never reads a clock: every step is told what time it is.

use crate::text::{cut_text, digits};

/// The largest integer that a double, and so JavaScript and Lua, holds exactly.
pub(crate) const MAX_SAFE: u64 = (1 << 53) - 1;

/// A product, or more than any that is exact: where it would not be far below 2^64, the largest number. The checked
/// multiplications are of 128 bits in WebAssembly, which has none.
#[inline(always)]
pub(crate) const fn product(a: u64, b: u64) -> u64 {
    if a.leading_zeros().saturating_add(b.leading_zeros()) < u64::BITS {
        return u64::MAX;
    }
    a.wrapping_mul(b)
}

/// A point in time on the clock that decides: whole milliseconds since that clock's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

/// A span of time: whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(u64);

/// Whose clock decides. It matters when that clock steps back by more than a state can explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One clock decides for everyone: the store's. After a long step back a state is moved to now.
    Store,
    /// Each caller's own clock decides. Nothing is ever moved, since two callers whose clocks differ
    /// would refill each other's budgets; the time to live heals what a wrong clock left behind.
    Caller,
}

impl Clock {
    pub(crate) const fn may_rebase(self) -> bool {
        matches!(self, Self::Store)
    }
}

impl Timestamp {
    /// A timestamp of `ms` milliseconds, held below 2^53 so that every engine can carry it.
    #[must_use]
    #[inline(always)]
    pub const fn from_ms(ms: u64) -> Self {
        Self(if ms > MAX_SAFE { MAX_SAFE } else { ms })
    }

    /// Milliseconds since the clock's epoch.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to here; zero when `earlier` is not earlier.
    #[must_use]
    #[inline(always)]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` later.
    #[must_use]
    pub const fn plus(self, span: Millis) -> Self {
        Self::from_ms(self.0.saturating_add(span.0))
    }
}

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that an option may name: 365 days.
    pub const MAX_OPTION: Self = Self(365 * 86_400_000);

    /// A span of `ms` milliseconds, held below 2^53 so that every engine can carry it.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(if ms > MAX_SAFE { MAX_SAFE } else { ms })
    }

    /// The span in milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The two spans together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Without so much of it; never less than nothing.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Reads `"250ms"`, `"10s"`, `"10 s"`, `"1.5s"`, `"5m"`, `"1h"` or `"7d"`.
    ///
    /// Answers `None` for anything else, and for what is not a whole number of milliseconds from
    /// 1 to 365 days.
    ///
    /// ```
    /// use tidegate::Millis;
    /// assert_eq!(Millis::parse("1.5s"), Some(Millis::from_ms(1_500)));
    /// assert_eq!(Millis::parse("10 parsecs"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let unit_at = text.bytes().position(|byte| byte.is_ascii_alphabetic())?;
        let (number, unit) = text.split_at_checked(unit_at)?;
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let number = without_end(number, b' ');
        let (whole, fraction) = match cut_text(number, b'.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        Self::option(product(digits(whole)?, unit_ms).saturating_add(scaled(fraction, unit_ms)?))
    }

    /// A span that an option may name, or `None`.
    #[must_use]
    pub const fn option(ms: u64) -> Option<Self> {
        if ms >= 1 && ms <= Self::MAX_OPTION.0 { Some(Self(ms)) } else { None }
    }
}

/// `0.fraction` times `unit_ms`, when that is whole.
fn scaled(fraction: &str, unit_ms: u64) -> Option<u64> {
    let fraction = without_end(fraction, b'0');
    if fraction.is_empty() {
        return Some(0);
    }
    let parts = product(digits(fraction)?, unit_ms);
    // Sixteen digits at most.
    let scale = fraction.bytes().fold(1, |scale, _| product(scale, 10));
    (parts.checked_rem(scale)? == 0).then(|| parts.checked_div(scale))?
}

/// The text without what stands at its end.
fn without_end(text: &str, end: u8) -> &str {
    let last = text.bytes().rposition(|byte| byte != end);
    last.and_then(|last| text.get(..=last)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly_or_not_at_all() {
        let ms = |text| Millis::parse(text).map(Millis::as_ms);
        assert_eq!(ms("250ms"), Some(250));
        assert_eq!(ms("10 s"), Some(10_000));
        assert_eq!(ms("1.5s"), Some(1_500));
        assert_eq!(ms("0.001s"), Some(1));
        assert_eq!(ms("1.50s"), Some(1_500));
        assert_eq!(ms("7d"), Some(604_800_000));
        assert_eq!(ms("365d"), Some(31_536_000_000));
        for wrong in [
            "",
            "s",
            "10",
            "0s",
            "366d",
            "1.5ms",
            "0.0001s",
            "-1s",
            "+1s",
            "1e3s",
            "1.s",
            ".5s",
            " 1s",
            "1s ",
            "10 parsecs",
            "1S",
            "99999999999999999999d",
            "1\ts",
            "1,5s",
            "١s",
        ] {
            assert_eq!(ms(wrong), None, "{wrong:?}");
        }
    }
}
