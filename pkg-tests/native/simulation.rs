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

fn run(
    seed: u64,
    mode: fn(&mut random::Random) -> tidegate::tier::Mode,
    sabotage: Sabotage,
) -> Result<(), String> {
    let run = || World::new(Plan::from(seed, mode, sabotage)).run();
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without text".into())
    })
}

fn every_seed_holds(mode: fn(&mut random::Random) -> tidegate::tier::Mode) {
    for seed in seeds(SEEDS) {
        if let Err(error) = run(seed, mode, Sabotage::None) {
            panic!("TIDEGATE_SEED={seed} replays this: {error}");
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
