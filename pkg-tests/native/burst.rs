//! Burst alarms: every known way of getting them wrong, and a log of all observations as the judge.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::burst::{Burst, BurstPolicy, Observation, Trigger, observe};
use tidegate::dedup::Tag;
use tidegate::op::{self, Op, Reply, Write};
use tidegate::{Clock, Millis, Timestamp};

fn policy(threshold: u64, window: u64, cooldown: u64, trigger: Trigger) -> BurstPolicy {
    BurstPolicy::new(threshold, Millis::from_ms(window), Millis::from_ms(cooldown), trigger)
        .unwrap()
}

/// One identity on a store with a clock.
struct Identity {
    record: Option<Burst>,
    policy: BurstPolicy,
    clock: Clock,
}

impl Identity {
    const fn new(policy: BurstPolicy) -> Self {
        Self { record: None, policy, clock: Clock::Store }
    }

    fn observe(&mut self, now: u64) -> Observation {
        self.tell(now, 1, None)
    }

    fn tell(&mut self, now: u64, weight: u64, nonce: Option<&str>) -> Observation {
        let nonce = nonce.map(|nonce| Tag::new(nonce).unwrap());
        let at = Timestamp::from_ms(now);
        observe(&mut self.record, &self.policy, weight, nonce.as_ref(), at, self.clock)
    }

    fn firings(&mut self, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        times.into_iter().filter(|now| self.observe(*now).fired).collect()
    }
}

const T: u64 = 1_790_000_000_000;

#[test]
fn a_window_below_a_second_fires_once_and_is_a_window_of_its_own() {
    let mut identity = Identity::new(policy(3, 100, 0, Trigger::Tumbling));
    let fired = identity.firings((T..T + 1_000).step_by(10));
    assert_eq!(fired, (0..10).map(|window| T + window * 100 + 20).collect::<Vec<_>>());
    let mut identity = Identity::new(policy(3, 1, 0, Trigger::Tumbling));
    assert_eq!(identity.firings([T, T, T, T, T + 1, T + 1, T + 1]), [T, T + 1]);
}

#[test]
fn a_cooldown_shorter_than_the_window_fires_once_in_it() {
    let mut identity = Identity::new(policy(3, 3_000, 1_000, Trigger::Tumbling));
    let seam = T - T % 3_000;
    let fired = identity.firings((seam..seam + 6_000).step_by(100));
    assert_eq!(fired, [seam + 200, seam + 3_200]);
}

#[test]
fn a_cooldown_longer_than_the_window_holds_across_windows() {
    let mut identity = Identity::new(policy(2, 1_000, 60_000, Trigger::Tumbling));
    let fired = identity.firings((T..T + 130_000).step_by(100));
    assert_eq!(fired, [T + 100, T + 60_100, T + 120_100]);
    assert!(matches!(&identity.record, Some(burst) if burst.counts.len() == 1), "one small record");
}

#[test]
fn a_cooldown_that_ends_inside_a_window_lets_that_window_fire() {
    let mut identity = Identity::new(policy(2, 1_000, 900, Trigger::Tumbling));
    let seam = T - T % 1_000;
    // Fires late in the first window; the second reaches the threshold at once, but is quiet until 700.
    let fired = identity.firings([
        seam + 799,
        seam + 800,
        seam + 1_000,
        seam + 1_001,
        seam + 1_699,
        seam + 1_700,
        seam + 1_701,
    ]);
    assert_eq!(fired, [seam + 800, seam + 1_700]);
}

#[test]
fn a_burst_across_the_seam_is_missed_by_tumbling_and_caught_by_sliding() {
    let seam = T - T % 60_000 + 60_000;
    let times = || (0..18).map(|n| seam - 153 + n * 17);
    assert_eq!(
        Identity::new(policy(10, 60_000, 0, Trigger::Tumbling)).firings(times()),
        [0_u64; 0]
    );
    assert_eq!(Identity::new(policy(10, 60_000, 0, Trigger::Sliding)).firings(times()), [seam]);
}

#[test]
fn a_lost_reply_is_told_again_and_counted_once() {
    for trigger in [Trigger::Tumbling, Trigger::Sliding] {
        let mut identity = Identity::new(policy(3, 1_000, 0, trigger));
        identity.tell(T, 1, Some("n1"));
        identity.tell(T, 1, Some("n2"));
        let fired = identity.tell(T, 1, Some("n3"));
        assert_eq!((fired.fired, fired.count, fired.replay), (true, 3, false));
        let again = identity.tell(T + 500, 1, Some("n3"));
        assert_eq!((again.fired, again.count, again.replay), (true, 3, true));
        for nonce in [Some("n1"), Some("n2"), Some("n4"), None] {
            let other = identity.tell(T + 500, 1, nonce);
            assert!(!other.fired && !other.replay, "only the attempt that fired");
        }
        let again = identity.tell(T + 1_500, 1, Some("n3"));
        assert!(again.fired && again.replay, "in the next window too");
    }
}

#[test]
fn weights_count_and_a_count_beyond_the_threshold_still_fires() {
    let mut identity = Identity::new(policy(10, 1_000, 0, Trigger::Tumbling));
    assert_eq!(identity.tell(T, 9, None).count, 9);
    let jumped = identity.tell(T, 5, None);
    assert_eq!((jumped.fired, jumped.count), (true, 14));
    let mut identity = Identity::new(policy((1 << 53) - 1, 1_000, 0, Trigger::Sliding));
    assert!(identity.tell(T, u64::MAX, None).fired, "and no sum wraps");
    assert_eq!(identity.tell(T, u64::MAX, None).count, (1 << 53) - 1);
}

#[test]
fn a_clock_that_steps_back_never_fires_a_window_twice() {
    // A short step finds time standing still.
    let seam = T - T % 1_000;
    let mut identity = Identity::new(policy(2, 1_000, 0, Trigger::Tumbling));
    assert_eq!(
        identity.firings([seam + 100, seam + 100, seam - 1, seam - 900, seam + 999]),
        [seam + 100]
    );
    // A long one moves what was counted, and what was fired, to now.
    assert_eq!(identity.firings([seam - 100_000, seam - 100_000]), [0_u64; 0]);
    assert_eq!(identity.firings([seam - 99_000, seam - 99_000]), [seam - 99_000]);
}

#[test]
fn a_clock_that_jumps_ahead_and_comes_back_never_fires_a_window_twice() {
    let seam = T - T % 1_000;
    let mut identity = Identity::new(policy(2, 1_000, 0, Trigger::Tumbling));
    assert_eq!(identity.firings([seam, seam]), [seam]);
    assert_eq!(identity.firings([seam + 2_000]), [0_u64; 0]);
    assert_eq!(
        identity.firings([seam + 1, seam + 2, seam + 3]),
        [0_u64; 0],
        "that window has fired"
    );
    assert_eq!(identity.firings([seam + 1_000, seam + 1_000]), [seam + 1_000]);
}

#[test]
fn a_step_back_keeps_an_identity_quiet_no_longer_than_its_cooldown() {
    let mut identity = Identity::new(policy(1, 1_000, 60_000, Trigger::Tumbling));
    assert!(identity.observe(T).fired);
    let back = T - 10_000_000;
    assert!(!identity.observe(back).fired);
    assert!(!identity.observe(back + 59_999).fired);
    assert!(identity.observe(back + 60_000).fired);
}

#[test]
fn callers_clocks_never_move_a_record_back() {
    let mut identity = Identity::new(policy(2, 1_000, 0, Trigger::Tumbling));
    identity.clock = Clock::Caller;
    assert!(!identity.observe(T).fired);
    assert!(identity.observe(T - 10_000_000).fired, "counted in the newest window");
    assert_eq!(identity.firings((0..50).map(|n| T - n * 1_000_000)), [0_u64; 0]);
}

#[test]
fn a_record_that_is_over_is_over_by_value() {
    for trigger in [Trigger::Tumbling, Trigger::Sliding] {
        let mut kept = Identity::new(policy(1, 1_000, 0, trigger));
        assert!(kept.tell(T, 1, Some("n")).fired);
        let over = kept.record.as_ref().unwrap().over_at().as_ms();
        assert!(over >= T + 2_000, "a retry in the next window still finds it");
        let mut dropped = Identity::new(kept.policy);
        assert_eq!(kept.tell(over, 1, Some("n")), dropped.tell(over, 1, Some("n")));
    }
}

// ---- random observations

#[derive(Clone, Debug)]
struct Seen {
    passed: u64,
    weight: u64,
    retries: bool,
    drops: bool,
}

fn seen() -> impl Strategy<Value = Seen> {
    let passed = prop_oneof![4 => Just(0), 4 => 1..10_u64, 2 => 1..200_u64, 1 => 1..5_000_u64];
    let weight = prop_oneof![6 => Just(1), 1 => 1..5_u64];
    (passed, weight, any::<bool>(), any::<bool>())
        .prop_map(|(passed, weight, retries, drops)| Seen { passed, weight, retries, drops })
}

fn window() -> impl Strategy<Value = u64> {
    prop_oneof![1..40_u64, Just(100), Just(160), 1..2_000_u64]
}

/// As a store keeps it: text, dropped at random once it is over.
struct Stored {
    text: Option<(String, u64)>,
    policy: BurstPolicy,
}

impl Stored {
    fn observe(&mut self, seen: &Seen, nonce: &Tag, now: u64) -> Observation {
        self.text = self.text.take().filter(|(_, over_at)| !seen.drops || now < *over_at);
        let record = self.text.as_ref().map(|(text, _)| op::decode(text).expect("our own text"));
        let op = Op::Observe { policy: &self.policy, weight: seen.weight, nonce: Some(nonce) };
        let (reply, write) = op::step(record, &op, Timestamp::from_ms(now), Clock::Store).unwrap();
        if let Write::Put(record, ttl) = write {
            let text = op::encode(&record).unwrap();
            assert!(text.len() <= 512 && text.bytes().all(|b| (0x20..0x7f).contains(&b)), "{text}");
            assert_eq!(op::decode(&text), Ok(record));
            self.text = Some((text, now + ttl.as_ms()));
        }
        match reply {
            Reply::Observation(observation) => observation,
            other => panic!("{other:?}"),
        }
    }
}

const STEPS: usize = 100;

#[test]
fn tumbling_fires_exactly_as_a_count_of_each_window_says() {
    let policies = (1..8_u64, window(), prop_oneof![Just(0), 1..5_000_u64]);
    proptest!(support::config(15_000, STEPS as u64 / 2), |((threshold, window, cooldown) in policies, start in 0..T, seen in vec(seen(), 1..=STEPS))| {
        let mut stored = Stored { text: None, policy: policy(threshold, window, cooldown, Trigger::Tumbling) };
        let (mut now, mut counts, mut fired) = (start, BTreeMap::new(), BTreeMap::new());
        let mut quiet_until = 0;
        for (number, seen) in seen.iter().enumerate() {
            now += seen.passed;
            let number_of_window = now / window;
            let nonce = Tag::new(&format!("n{number}")).unwrap();
            for attempt in 0..=u8::from(seen.retries) {
                let observation = stored.observe(seen, &nonce, now);
                let replay = attempt > 0 && fired.get(&number_of_window) == Some(&number);
                let count = counts.entry(number_of_window).or_insert(0);
                *count += if replay { 0 } else { seen.weight };
                let fires = *count >= threshold && !fired.contains_key(&number_of_window) && now >= quiet_until;
                if fires {
                    fired.insert(number_of_window, number);
                    quiet_until = now + cooldown;
                }
                prop_assert_eq!((observation.fired, observation.replay), (fires || replay, replay), "at {}", now - start);
                prop_assert_eq!(observation.count, *count);
                prop_assert_eq!(observation.window_ends_in.as_ms(), (number_of_window + 1) * window - now);
            }
        }
    });
}

#[test]
fn sliding_is_never_late_and_at_most_a_sixteenth_of_a_window_early() {
    let policies = (1..8_u64, window(), prop_oneof![Just(0), 1..5_000_u64]);
    proptest!(support::config(15_000, STEPS as u64 / 2), |((threshold, window, cooldown) in policies, start in 100_000..T, seen in vec(seen(), 1..=STEPS))| {
        let mut stored = Stored { text: None, policy: policy(threshold, window, cooldown, Trigger::Sliding) };
        let (mut now, mut log, mut quiet_until) = (start, Vec::new(), 0);
        for (number, seen) in seen.iter().enumerate() {
            now += seen.passed;
            log.push((now, seen.weight));
            // Units seen less than so many sixteenths of a millisecond ago.
            let within = |sixteenths: u64| -> u64 {
                let recent = log.iter().filter(|(at, _)| (now - at) * 16 < sixteenths);
                recent.map(|(_, weight)| weight).sum()
            };
            let (least, most) = (within(16 * window), within(17 * window));
            let observation = stored.observe(seen, &Tag::new(&format!("n{number}")).unwrap(), now);
            prop_assert!((least..=most).contains(&observation.count), "{} of {least} to {most}", observation.count);
            if now >= quiet_until {
                prop_assert!(observation.fired || least < threshold, "late");
                prop_assert!(!observation.fired || most >= threshold, "too early");
            } else {
                prop_assert!(!observation.fired, "twice in one window");
            }
            if observation.fired {
                quiet_until = now + window.max(cooldown);
            }
            // What is counted leaves when it is told to: with nothing more, the count is then smaller.
            let later = Seen { passed: 0, weight: 0, retries: false, drops: false };
            let text = stored.text.clone();
            let ends = now + observation.window_ends_in.as_ms();
            let other = Tag::new("other").unwrap();
            prop_assert!(observation.window_ends_in > Millis::ZERO);
            prop_assert_eq!(stored.observe(&later, &other, ends - 1).count, observation.count);
            stored.text.clone_from(&text);
            prop_assert!(stored.observe(&later, &other, ends).count < observation.count);
            stored.text = text;
        }
    });
}

/// Many nodes, lost replies and retries: one firing a window, and nobody but its own attempt hears of it again.
#[test]
fn one_firing_a_window_over_the_fleet_whatever_is_lost() {
    let observations = vec((0..5_u64, 0..3_u8), 1..200);
    proptest!(support::config(15_000, 100), |(window in window(), threshold in 1..10_u64, observations in observations)| {
        let mut identity = Identity::new(policy(threshold, window, 0, Trigger::Tumbling));
        let mut firings = BTreeMap::new();
        let mut now = T;
        for (number, (passed, attempts)) in observations.iter().enumerate() {
            now += passed;
            let nonce = format!("n{number}");
            // Each attempt but the last loses its reply.
            for attempt in 0..=*attempts {
                let observation = identity.tell(now, 1, Some(&nonce));
                if observation.fired {
                    let by = firings.entry(now / window).or_insert(number);
                    prop_assert_eq!(*by, number, "a second firing");
                    prop_assert_eq!(observation.replay && attempt == 0, false);
                }
            }
        }
    });
}
