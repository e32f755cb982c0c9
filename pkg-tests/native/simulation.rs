//! Fleets in virtual time: nodes with the production tiers, a network that delays, loses and repeats, a shared
//! store that runs the production steps on text, goes away and comes back, and whose clock is set. What
//! happens follows from a seed alone; a seed that fails is printed, and `TIDEGATE_SEED` replays it.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[path = "simulation/audit.rs"]
mod audit;
#[path = "simulation/ids.rs"]
mod ids;
#[path = "simulation/random.rs"]
mod random;
mod support;
#[path = "simulation/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidegate::tier::{Mode, Tier, Verdict};
use tidegate::{Clock, Limit, LimitOptions, Limits, Millis, Slot, Timestamp};
use world::{Plan, Sabotage, World};

/// Runs per kind of fleet in the test command; as many times more in the long form.
const SEEDS: u64 = 700;

fn seeds(at_least: u64) -> Vec<u64> {
    if let Some(seed) = std::env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return vec![seed];
    }
    let count = support::soak().map_or(at_least, |operations| at_least.max(operations / 50));
    (0..count).collect()
}

fn run(seed: u64, mode: fn(&mut random::Random) -> Mode, sabotage: Sabotage) -> Result<(), String> {
    holds(Plan::from(seed, mode, sabotage))
}

fn holds(plan: Plan) -> Result<(), String> {
    let run = || World::new(plan).run();
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without text".into())
    })
}

fn every_seed_holds(mode: fn(&mut random::Random) -> Mode) {
    for seed in seeds(SEEDS) {
        let plan = || Plan::from(seed, mode, Sabotage::None);
        for held in [holds(plan()), holds(plan().crowded())] {
            held.unwrap_or_else(|error| panic!("TIDEGATE_SEED={seed} replays this: {error}"));
        }
    }
}

#[test]
fn deny_cache_admits_nothing_above_the_limit() {
    every_seed_holds(world::deny_cache);
}

#[test]
fn leases_stay_within_their_bound_and_every_unit_is_accounted_for() {
    every_seed_holds(world::lease);
}

#[test]
fn eager_nodes_stay_within_their_bound_and_every_delta_counts_once() {
    every_seed_holds(world::eager);
}

/// By an index that is told which rows were freed: it knows no generations.
#[test]
fn an_answer_that_comes_after_its_limiter_was_closed_is_about_no_other() {
    let now = Timestamp::from_ms(1_000_000);
    let limits = || {
        Limits::new(vec![Limit::new(&LimitOptions::new(5, Millis::from_ms(1_000))).unwrap()])
            .unwrap()
    };
    let mode = Mode::Eager { most_unsynced: 5, sync_every: Millis::from_ms(100) };
    let mut tier = Tier::new(mode, Clock::Store, 10);
    let closed = tier.register(limits(), 1);
    let (Verdict::Ask(first), Some(slot)) = tier.ask(closed, None, 1, now) else { panic!() };
    tier.failed(&first);
    let held = Slot { generation: Slot::ANY, ..slot };
    let (Verdict::Ask(late), _) = tier.ask(closed, Some(held), 1, now) else { panic!() };
    tier.forget(held);
    tier.release(closed);
    let other = tier.register(limits(), 2);
    let (_, Some(reused)) = tier.ask(other, None, 1, now) else { panic!() };
    assert_eq!((other, reused.index), (closed, slot.index));
    tier.failed(&late);
    let (verdict, _) = tier.ask(other, Some(held), 1, now);
    assert_eq!(verdict, Verdict::Wait, "its own question is under way");
}

#[test]
fn a_message_is_handled_once_and_a_burst_fires_once() {
    for seed in seeds(SEEDS) {
        let run = || ids::Ids::new(seed, false).run();
        assert!(catch_unwind(run).is_ok(), "TIDEGATE_SEED={seed} replays this");
    }
}

#[test]
fn ids_that_are_trusted_too_far_are_noticed() {
    std::panic::set_hook(Box::new(|_| {}));
    let noticed = (0..SEEDS).any(|seed| catch_unwind(|| ids::Ids::new(seed, true).run()).is_err());
    let _ = std::panic::take_hook();
    assert!(noticed);
}

/// A safeguard that can be taken away without any seed failing would guard nothing.
#[test]
fn without_any_one_safeguard_some_seed_fails() {
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<Sabotage> = Sabotage::ALL
        .into_iter()
        .filter(|sabotage| (0..4 * SEEDS).all(|seed| run(seed, sabotage.mode(), *sabotage).is_ok()))
        .collect();
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
