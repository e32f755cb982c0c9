//! Validated policies: what a Limiter is built from. An invalid one cannot be built.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{FixedWindow, LeakyBucket, MAX_LIMITS, MAX_RECORD_CHARS, Shape, SlidingWindow};
use crate::digest;
use crate::text::push_number;
use crate::time::{MAX_SAFE, Millis, product};

/// Which arithmetic a limit uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Leaky bucket (token bucket, GCRA): continuous drain.
    #[default]
    LeakyBucket,
    /// Fixed window, anchored at the first admitted hit.
    FixedWindow,
    /// Sliding window of two weighted counts.
    SlidingWindow,
}

impl Algorithm {
    /// The algorithm of that name in the options.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "leaky-bucket" | "token-bucket" => Some(Self::LeakyBucket),
            "fixed-window" => Some(Self::FixedWindow),
            "sliding-window" => Some(Self::SlidingWindow),
            _ => None,
        }
    }
}

/// A limit as its user states it.
#[derive(Clone, Debug)]
pub struct LimitOptions {
    /// Names the limit in decisions; unique within one Limiter.
    pub name: String,
    /// The arithmetic.
    pub algorithm: Algorithm,
    /// Units admitted per window.
    pub limit: u64,
    /// The window.
    pub window: Millis,
    /// Buckets only: the capacity. Default: `limit`; with `strict` half of it, rounded up.
    pub burst: Option<u64>,
    /// Buckets only: no window, wherever it starts, ever admits more than `limit` units.
    pub strict: bool,
}

impl LimitOptions {
    /// `limit` units per `window` in a leaky bucket named "default".
    #[must_use]
    pub fn new(limit: u64, window: Millis) -> Self {
        Self {
            name: "default".into(),
            algorithm: Algorithm::default(),
            limit,
            window,
            burst: None,
            strict: false,
        }
    }
}

/// An option that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The option's name.
    pub option: &'static str,
    /// What would make sense.
    pub expected: String,
}

impl PolicyError {
    pub(crate) fn new(option: &'static str, expected: impl Into<String>) -> Self {
        Self { option, expected: expected.into() }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option \"{}\" must be {}", self.option, self.expected)
    }
}

impl core::error::Error for PolicyError {}

/// A limit's name as a record holds it: short printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitName(Box<str>);

impl LimitName {
    const MAX_CHARS: usize = 24;

    /// Short plain names stand for themselves; any other is its hash.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self::parse(name).unwrap_or_else(|| {
            let mut hashed = String::from("~");
            hashed.push_str(&digest::short(name.as_bytes()));
            Self(hashed.into())
        })
    }

    /// The name that a record holds, if it is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let body = text.strip_prefix('~').unwrap_or(text);
        let fits = !body.is_empty() && text.len() <= Self::MAX_CHARS && body.bytes().all(plain);
        fits.then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One validated limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    name: LimitName,
    shape: Shape,
}

impl Limit {
    /// The limit, or which option makes no sense and what would.
    ///
    /// ```
    /// use tidegate::{Limit, LimitOptions, Millis};
    /// let limit = Limit::new(&LimitOptions::new(10, Millis::from_ms(1_000))).unwrap();
    /// assert_eq!(limit.capacity(), 10);
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] names the option.
    pub fn new(options: &LimitOptions) -> Result<Self, PolicyError> {
        if options.name.is_empty() {
            return Err(PolicyError::new("name", "a non-empty string"));
        }
        if !(1..=MAX_SAFE).contains(&options.limit) {
            return Err(PolicyError::new("limit", "a positive safe integer"));
        }
        if Millis::option(options.window.as_ms()).is_none() {
            return Err(PolicyError::new(
                "window",
                "a whole number of milliseconds from 1 to 365 days",
            ));
        }
        let shape = match options.algorithm {
            Algorithm::LeakyBucket => bucket(options)?,
            Algorithm::FixedWindow => {
                no_bucket_options(options)?;
                FixedWindow::new(options.limit, options.window).map(Shape::Fixed)
            }
            Algorithm::SlidingWindow => {
                no_bucket_options(options)?;
                SlidingWindow::new(options.limit, options.window).map(Shape::Sliding)
            }
        };
        let shape = shape.ok_or_else(|| too_large(options))?;
        Ok(Self { name: LimitName::of(&options.name), shape })
    }

    /// A limit whose parts were validated before.
    pub(crate) const fn restored(name: LimitName, shape: Shape) -> Self {
        Self { name, shape }
    }

    /// The most units that can be admitted at once.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The name as records hold it.
    #[must_use]
    pub const fn name(&self) -> &LimitName {
        &self.name
    }

    /// The arithmetic.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The most characters that this limit's entry in a record can take.
    fn most_chars(&self) -> usize {
        let numbers = match self.shape {
            Shape::Bucket(bucket) => {
                let debt = product(bucket.burst(), bucket.window_ms());
                [bucket.rate(), bucket.window_ms(), bucket.burst(), debt]
            }
            Shape::Fixed(window) => [window.limit(), window.window_ms(), window.limit(), 0],
            Shape::Sliding(window) => {
                [window.limit(), window.window_ms(), window.limit(), window.limit()]
            }
        };
        let digits = numbers.into_iter().chain([MAX_SAFE]).map(decimal_digits);
        let punctuation = "|=b,,,,,".len();
        digits.fold(self.name.as_str().len().saturating_add(punctuation), usize::saturating_add)
    }
}

/// How many characters a number takes in decimal.
fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| (log as usize).saturating_add(1))
}

fn no_bucket_options(options: &LimitOptions) -> Result<(), PolicyError> {
    if options.burst.is_some() {
        return Err(PolicyError::new("burst", "left out: only buckets have one"));
    }
    if options.strict {
        return Err(PolicyError::new("strict", "left out: only buckets can be strict"));
    }
    Ok(())
}

/// The bucket; `None` inside where its numbers are too large to be exact.
fn bucket(options: &LimitOptions) -> Result<Option<Shape>, PolicyError> {
    let default = if options.strict { options.limit.div_ceil(2) } else { options.limit };
    let burst = options.burst.unwrap_or(default);
    if !(1..=MAX_SAFE).contains(&burst) {
        return Err(PolicyError::new("burst", "a positive safe integer"));
    }
    if !options.strict {
        return Ok(LeakyBucket::new(options.limit, options.window, burst).map(Shape::Bucket));
    }
    let rate = options
        .limit
        .saturating_add(1)
        .checked_sub(burst)
        .filter(|rate| *rate > 0)
        .ok_or_else(|| PolicyError::new("burst", "at most the limit when strict"))?;
    Ok(LeakyBucket::new(rate, options.window, burst).map(Shape::Bucket))
}

/// Names what is too large, and the largest that fits beside the other numbers.
fn too_large(options: &LimitOptions) -> PolicyError {
    let per_window =
        super::EXACT_BELOW.saturating_sub(1).checked_div(options.window.as_ms()).unwrap_or(0);
    let (option, rule) = match options.algorithm {
        Algorithm::SlidingWindow => ("limit", "limit * window"),
        _ if options.burst.is_some_and(|burst| burst > options.limit) => {
            ("burst", "burst * window")
        }
        _ => ("limit", "max(limit, burst) * window"),
    };
    let mut expected = String::from("smaller: ");
    expected.push_str(rule);
    expected.push_str(" in lowest terms must stay below 2^51; up to ");
    push_number(&mut expected, per_window);
    expected.push_str(" always fits this window");
    PolicyError::new(option, expected)
}

/// The limits of one Limiter: one to eight, with different names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits(Vec<Limit>);

impl Limits {
    /// The limits together, checked as one.
    ///
    /// # Errors
    /// [`PolicyError`] for none, for more than eight, for two of one name, and for numbers that
    /// together would not fit a record of 512 characters.
    pub fn new(limits: Vec<Limit>) -> Result<Self, PolicyError> {
        if limits.is_empty() || limits.len() > MAX_LIMITS {
            return Err(PolicyError::new("limit", "one to 8 limits"));
        }
        let taken = |(at, limit): (usize, &Limit)| {
            limits.iter().take(at).any(|earlier| earlier.name == limit.name)
        };
        if limits.iter().enumerate().any(taken) {
            return Err(PolicyError::new("name", "unique within one Limiter"));
        }
        let head = "1l|b9007199254740991,31536000000.".len();
        let chars =
            limits.iter().fold(head, |sum: usize, limit| sum.saturating_add(limit.most_chars()));
        if chars > MAX_RECORD_CHARS {
            let mut expected = String::from("shorter or fewer: at their largest they need ");
            push_number(&mut expected, chars.try_into().unwrap_or(u64::MAX));
            expected.push_str(" of 512 characters");
            return Err(PolicyError::new("limit", expected));
        }
        Ok(Self(limits))
    }

    /// The limits in the order given.
    pub fn iter(&self) -> core::slice::Iter<'_, Limit> {
        self.0.iter()
    }

    /// The only limit, where there is just one.
    #[must_use]
    pub const fn single(&self) -> Option<&Limit> {
        match self.0.as_slice() {
            [limit] => Some(limit),
            _ => None,
        }
    }

    /// The first limit.
    #[must_use]
    pub fn first(&self) -> Option<&Limit> {
        self.0.first()
    }
}

impl<'a> IntoIterator for &'a Limits {
    type Item = &'a Limit;
    type IntoIter = core::slice::Iter<'a, Limit>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
