//! Burst alarms: counts observations of an identity and fires once when they reach a threshold.
//!
//! Count, latch, cooldown and the firing's nonce are one value, so that one step counts and latches,
//! and a retry after a lost reply is told again that it fired.

use alloc::vec::Vec;

use crate::dedup::Tag;
use crate::limit::PolicyError;
use crate::time::{Clock, MAX_SAFE, Millis, Timestamp, product};

/// A sliding trigger counts in this many parts of a window.
const PARTS: u64 = 16;

/// What makes an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstPolicy {
    threshold: u64,
    window: Millis,
    cooldown: Millis,
    trigger: Trigger,
}

/// How observations are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// In windows aligned to the epoch of the clock.
    #[default]
    Tumbling,
    /// Over the last window, and at most a sixteenth of one more: no seam, never late.
    Sliding,
}

impl BurstPolicy {
    /// A policy. A `cooldown` of zero is the rest of the window (tumbling) or one window (sliding).
    ///
    /// # Errors
    /// [`PolicyError`] names the option that makes no sense.
    pub fn new(
        threshold: u64,
        window: Millis,
        cooldown: Millis,
        trigger: Trigger,
    ) -> Result<Self, PolicyError> {
        if !(1..=MAX_SAFE).contains(&threshold) {
            return Err(PolicyError::new("threshold", "a positive safe integer"));
        }
        if Millis::option(window.as_ms()).is_none() {
            return Err(PolicyError::new(
                "window",
                "a whole number of milliseconds from 1 to 365 days",
            ));
        }
        if cooldown > Millis::MAX_OPTION {
            return Err(PolicyError::new("cooldown", "at most 365 days"));
        }
        Ok(Self { threshold, window, cooldown, trigger })
    }

    /// Observations that trigger.
    #[must_use]
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// The cooldown as it was asked for.
    #[must_use]
    pub const fn cooldown(&self) -> Millis {
        self.cooldown
    }

    /// How observations are counted.
    #[must_use]
    pub const fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// How long after a firing there is none.
    fn quiet(&self) -> Millis {
        match self.trigger {
            Trigger::Tumbling => self.cooldown,
            Trigger::Sliding => self.cooldown.max(self.window),
        }
    }

    /// The number of the bucket that `now` lies in.
    const fn bucket(&self, now: Timestamp) -> u64 {
        let scaled = product(now.as_ms(), self.parts());
        match scaled.checked_div(self.window.as_ms()) {
            Some(bucket) => bucket,
            None => 0,
        }
    }

    /// When bucket number `bucket` begins.
    const fn start(&self, bucket: u64) -> Timestamp {
        Timestamp::from_ms(product(bucket, self.window.as_ms()).div_ceil(self.parts()))
    }

    const fn parts(&self) -> u64 {
        match self.trigger {
            Trigger::Tumbling => 1,
            Trigger::Sliding => PARTS,
        }
    }

    /// How many buckets count: of a sliding window the one that is leaving counts in full.
    const fn span(&self) -> u64 {
        match self.trigger {
            Trigger::Tumbling => 1,
            Trigger::Sliding => PARTS.saturating_add(1),
        }
    }
}

/// What is known of one identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The window that the counts are in.
    pub window: Millis,
    /// How they are counted.
    pub trigger: Trigger,
    /// The newest bucket.
    pub bucket: u64,
    /// Counts by bucket, the newest first.
    pub counts: Vec<u64>,
    /// The bucket of the last firing.
    pub fired: Option<u64>,
    /// No firing before this.
    pub quiet_until: Timestamp,
    /// The nonce of the last firing.
    pub nonce: Option<Tag>,
}

/// One observation's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// True for the first observation at or over the threshold.
    pub fired: bool,
    /// Observations counted, this one included.
    pub count: u64,
    /// How long until the window ends; sliding: until the oldest of what is counted leaves it.
    pub window_ends_in: Millis,
    /// True when this nonce fired before: told again, not counted again.
    pub replay: bool,
}

impl Burst {
    fn new(policy: &BurstPolicy, now: Timestamp) -> Self {
        Self {
            window: policy.window,
            trigger: policy.trigger,
            bucket: policy.bucket(now),
            counts: vec![0],
            fired: None,
            quiet_until: Timestamp::default(),
            nonce: None,
        }
    }

    fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)).min(MAX_SAFE)
    }

    /// When, left alone, nothing of it counts any more. A window longer than the counts need, so that a
    /// retry with the firing's nonce still finds it.
    #[must_use]
    pub fn over_at(&self) -> Timestamp {
        let parts = if self.trigger == Trigger::Tumbling { 1 } else { PARTS };
        let last = product(self.bucket.saturating_add(1), self.window.as_ms()).div_ceil(parts);
        let counted = Timestamp::from_ms(last).plus(self.window).plus(self.window);
        counted.max(self.quiet_until)
    }

    /// Moves to the bucket of `now`. A clock that stepped back by up to a window finds time standing still;
    /// one that stepped back further finds its counts moved to now.
    fn advance(&mut self, policy: &BurstPolicy, now: Timestamp, clock: Clock) {
        if (self.window, self.trigger) != (policy.window, policy.trigger) {
            let (quiet_until, nonce) = (self.quiet_until, self.nonce.take());
            *self = Self { quiet_until, nonce, ..Self::new(policy, now) };
        }
        let bucket = policy.bucket(now);
        let back = self.bucket.saturating_sub(bucket);
        if back > policy.parts() && clock.may_rebase() {
            self.fired = self.fired.map(|fired| if fired == self.bucket { bucket } else { fired });
            self.bucket = bucket;
            self.quiet_until = self.quiet_until.min(now.plus(policy.quiet()));
        }
        let passed = bucket.saturating_sub(self.bucket);
        if passed > 0 {
            let zeros = usize::try_from(passed.min(policy.span())).unwrap_or_default();
            let mut counts = vec![0; zeros];
            counts.append(&mut self.counts);
            self.counts = counts;
            self.bucket = bucket;
        }
        self.counts.truncate(usize::try_from(policy.span()).unwrap_or_default());
    }

    fn observed(
        &self,
        policy: &BurstPolicy,
        now: Timestamp,
        fired: bool,
        replay: bool,
    ) -> Observation {
        let oldest = self.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let age = u64::try_from(oldest).unwrap_or_default();
        let leaves = self.bucket.saturating_sub(age).saturating_add(policy.span());
        let window_ends_in = policy.start(leaves).since(now);
        Observation { fired, count: self.count(), window_ends_in, replay }
    }
}

/// Counts one observation and decides whether it fires.
pub fn observe(
    slot: &mut Option<Burst>,
    policy: &BurstPolicy,
    weight: u64,
    nonce: Option<&Tag>,
    now: Timestamp,
    clock: Clock,
) -> Observation {
    // Over by value, whether or not the store has dropped it.
    let known = slot.take().filter(|burst| now < burst.over_at());
    let burst = slot.insert(known.unwrap_or_else(|| Burst::new(policy, now)));
    burst.advance(policy, now, clock);
    if nonce.is_some() && burst.nonce.as_ref() == nonce {
        return burst.observed(policy, now, true, true);
    }
    if let Some(newest) = burst.counts.first_mut() {
        *newest = newest.saturating_add(weight).min(MAX_SAFE);
    }
    let latched = policy.trigger == Trigger::Tumbling && burst.fired == Some(burst.bucket);
    let fired = burst.count() >= policy.threshold && !latched && now >= burst.quiet_until;
    if fired {
        burst.fired = Some(burst.bucket);
        burst.quiet_until = now.plus(policy.quiet());
        burst.nonce = nonce.cloned();
    }
    burst.observed(policy, now, fired, false)
}
