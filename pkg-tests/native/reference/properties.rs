//! What the words of a decision promise, checked by doing what they say.

use proptest::prelude::*;
use proptest::sample::Index;
use tidegate::op::{Op, Reply, Write};
use tidegate::{Clock, Decision, Limit, LimitOptions, Limits, Millis, Reason};

use crate::generate::{STEPS, Sequence, any_spec, sequence};
use crate::model::{Algo, Spec};
use crate::{Core, Text, compare, limits, options, support};

/// A key with a past, and a call on it.
struct Scene {
    text: Text,
    limits: Limits,
    cost: u64,
    now: u64,
}

fn scene(sequence: &Sequence, limiter: Index, cost: u64, clock: Clock) -> Scene {
    let mut text = Text::new(clock);
    let now = compare(sequence, &mut text, clock, true);
    let limits = limits(&sequence.limiters[limiter.index(sequence.limiters.len())]);
    Scene { text, limits, cost, now }
}

impl Scene {
    fn consume(&mut self, cost: u64, now: u64) -> Decision {
        let limits = self.limits.clone();
        let op = Op::Consume { limits: &limits, cost };
        match self.text.run(&op, now) {
            Reply::Decision(decision) => decision,
            other => panic!("{other:?}"),
        }
    }

    fn peek(&self, cost: u64, now: u64) -> Decision {
        let op = Op::Peek { limits: &self.limits, cost };
        match self.text.step(&op, now) {
            (Reply::Decision(decision), Write::Keep) => decision,
            other => panic!("{other:?}"),
        }
    }
}

fn scenes(short: u64) -> (ProptestConfig, impl Strategy<Value = (Sequence, Index, u64, bool)>) {
    let cost = prop_oneof![4 => Just(1), 2 => 1..12_u64, 1 => any::<u64>().prop_map(|n| n.max(1))];
    let scene = (sequence(true), any::<Index>(), cost, any::<bool>());
    (support::config(short, STEPS as u64 * 2 / 5), scene)
}

const fn clock(stores: bool) -> Clock {
    if stores { Clock::Store } else { Clock::Caller }
}

#[test]
fn retry_after_is_the_very_millisecond() {
    let (config, scenes) = scenes(2_500);
    proptest!(config, |((sequence, limiter, cost, stores) in scenes, between in any::<[Index; 4]>())| {
        let mut scene = scene(&sequence, limiter, cost, clock(stores));
        let now = scene.now;
        let denied = scene.consume(scene.cost, now);
        prop_assert_eq!(denied.allowed(), denied.retry_after == Some(Millis::ZERO));
        if denied.reason == Reason::Never {
            prop_assert_eq!(denied.retry_after, None);
            prop_assert!(scene.limits.iter().any(|limit| limit.capacity() < scene.cost));
        } else if let Some(wait) = denied.retry_after.map(Millis::as_ms).filter(|ms| *ms > 0) {
            let waits = between.map(|at| at.index(usize::try_from(wait).unwrap()) as u64);
            for ms in waits.into_iter().chain([0, wait - 1]) {
                let early = scene.peek(scene.cost, now + ms);
                prop_assert!(!early.allowed(), "admitted {} of {} ms early", wait - ms, wait);
                prop_assert_eq!(early.retry_after.map(Millis::as_ms), Some(wait - ms));
            }
            for ms in [wait, wait + 1, wait + 1_000_000] {
                prop_assert!(scene.peek(scene.cost, now + ms).allowed(), "denied {ms} of {wait} ms later");
            }
            prop_assert!(scene.consume(scene.cost, now + wait).allowed());
        }
    });
}

#[test]
fn remaining_is_how_many_more_are_admitted() {
    let (config, scenes) = scenes(2_500);
    proptest!(config, |((sequence, limiter, cost, stores) in scenes)| {
        let mut scene = scene(&sequence, limiter, cost, clock(stores));
        let now = scene.now;
        let decision = scene.consume(scene.cost, now);
        let mut left = decision.remaining;
        prop_assert_eq!(scene.peek(1, now).remaining, left);
        if left > 64 {
            let most = scene.consume(left - 32, now);
            prop_assert!(most.allowed());
            left = 32;
            prop_assert_eq!(most.remaining, left);
        }
        for more in (0..left).rev() {
            let admitted = scene.consume(1, now);
            prop_assert!(admitted.allowed(), "{more} of {left} not admitted");
            prop_assert_eq!(admitted.remaining, more);
        }
        let one_too_many = scene.consume(1, now);
        prop_assert!(!one_too_many.allowed());
        prop_assert_eq!(one_too_many.remaining, 0);
    });
}

#[test]
fn reset_after_is_when_all_is_whole() {
    let (config, scenes) = scenes(2_000);
    proptest!(config, |((sequence, limiter, cost, stores) in scenes)| {
        let mut scene = scene(&sequence, limiter, cost, clock(stores));
        let now = scene.now;
        let wait = scene.consume(scene.cost, now).reset_after.as_ms();
        let whole = scene.limits.iter().map(Limit::capacity).min().unwrap();
        if wait > 0 {
            prop_assert_eq!(scene.peek(1, now + wait - 1).reset_after.as_ms(), 1);
        }
        let later = scene.peek(whole, now + wait);
        prop_assert_eq!(later.reset_after, Millis::ZERO);
        prop_assert_eq!(later.remaining, whole);
        prop_assert!(later.allowed());
    });
}

#[test]
fn a_denied_call_changes_no_later_decision() {
    let (config, scenes) = scenes(2_500);
    proptest!(config, |((sequence, limiter, cost, stores) in scenes, later in 0..5_000_u64)| {
        let mut scene = scene(&sequence, limiter, cost, clock(stores));
        let (now, before) = (scene.now, scene.text.stored.clone());
        let peeked = scene.peek(scene.cost, now);
        let all = |scene: &Scene| [1, 2, 7, u64::MAX].map(|cost| scene.peek(cost, now));
        let as_it_was = all(&scene);
        let decision = scene.consume(scene.cost, now);
        prop_assert_eq!(peeked.allowed(), decision.allowed());
        prop_assert_eq!((peeked.reason, peeked.retry_after), (decision.reason, decision.retry_after));
        if !decision.allowed() {
            prop_assert_eq!(peeked, decision);
            prop_assert_eq!(all(&scene), as_it_was);
            // Once a step back or a new policy has been settled, a denial writes nothing at all.
            let settled = scene.text.stored.clone();
            prop_assert!(!scene.consume(scene.cost, now).allowed());
            prop_assert_eq!(&scene.text.stored, &settled);
            if sequence.limiters.len() == 1 && !stores {
                prop_assert_eq!(&settled, &before);
                prop_assert_eq!(scene.peek(1, now + later), Scene {
                    text: Text { stored: before, clock: Clock::Caller },
                    limits: scene.limits.clone(),
                    ..scene
                }.peek(1, now + later));
            }
        }
    });
}

#[test]
fn strict_never_admits_more_than_the_limit_in_any_window() {
    let spec = (1..20_u64, 1..60_u64).prop_flat_map(|(limit, window)| {
        (Just(limit), Just(window), proptest::option::of(1..=limit))
    });
    let tries = proptest::collection::vec(
        (prop_oneof![3 => Just(0), 3 => 1..3_u64, 1 => 1..80_u64], 1..6_u64),
        1..200,
    );
    proptest!(support::config(20_000, 100), |((limit, window, burst) in spec, tries in tries)| {
        let options = LimitOptions { burst, strict: true, ..LimitOptions::new(limit, Millis::from_ms(window)) };
        let limits = Limits::new(vec![Limit::new(&options).unwrap()]).unwrap();
        let mut scene = Scene { text: Text::new(Clock::Store), limits, cost: 1, now: 1_000_000 };
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (passed, cost) in tries {
            scene.now += passed;
            if scene.consume(cost, scene.now).allowed() {
                admitted.push((scene.now, cost));
            }
        }
        for (from, _) in &admitted {
            let inside = admitted.iter().filter(|(at, _)| (*from..from + window).contains(at));
            let sum: u64 = inside.map(|(_, cost)| cost).sum();
            prop_assert!(sum <= limit, "{sum} from {from}");
        }
    });
}

#[test]
fn a_policy_is_accepted_exactly_when_its_arithmetic_is_exact() {
    proptest!(support::config(3_000, 1), |(spec in any_spec("a"))| {
        let limit = Limit::new(&options(&spec));
        prop_assert_eq!(limit.is_ok(), spec.accepted(), "{:?}", limit);
        match limit {
            Ok(limit) => prop_assert_eq!(limit.capacity(), spec.capacity()),
            Err(error) => prop_assert!(matches!(error.option, "limit" | "burst"), "{}", error),
        }
    });
}

/// The limit that refusals say "always fits" does.
#[test]
fn a_refusal_says_what_fits() {
    proptest!(support::config(3_000, 1), |(spec in any_spec("a"))| {
        if spec.accepted() || spec.strict || spec.capacity() >= 1 << 53 {
            return Ok(());
        }
        let error = Limit::new(&options(&spec)).unwrap_err();
        let (_, fits) = error.expected.split_once("up to ").expect("says what fits");
        let most: u64 = fits.split(' ').next().unwrap().parse().unwrap();
        let burst = spec.burst.map(|burst| burst.min(most));
        let smaller = Spec { limit: spec.limit.min(most), burst, ..spec };
        prop_assert!(Limit::new(&options(&smaller)).is_ok(), "{error} of {spec:?}, but not {smaller:?}");
        prop_assert!(spec.algo != Algo::Fixed);
    });
}
