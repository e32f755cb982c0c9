//! Native decisions by key, in another order than the keys came in, one that no cache foresees. Contestants alternate;
//! prints, as JSON, the middle of each one's rounds and of its rounds' ratios to tidegate's. Part of
//! `npm run bench -- native`.
//!
//! Everybody reads a clock in each call. `counter` is the processor's, which governor reads unless told otherwise;
//! `Instant` and `SystemTime` are those of the standard library. Sixty calls a minute are admitted, the rest is denied.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use governor::clock::MonotonicClock;
use governor::middleware::StateInformationMiddleware;
use governor::{Quota, RateLimiter};
use throttlecrab::AdaptiveStore;
use tidegate::op::Op;
use tidegate::{
    Call, Key, Kind, Limit, LimitOptions, Limiter, Limits, MemoryStore, Millis, OnFull, Reason,
    Timestamp,
};

const PER_MINUTE: u32 = 60;
const MOST_KEYS: u32 = 2_000_000;
const ROUNDS: usize = 9;
/// The fewest calls of a round.
const CALLS: usize = 100_000;

/// Calls every key of a list; what is decided is only counted.
type Contestant = (&'static str, Box<dyn Fn(&[String]) + Sync>);

fn main() {
    let mut tables: Vec<_> = [1_000, 100_000, 1_000_000]
        .into_iter()
        .map(|count| table(count, 1, alone(count)))
        .collect();
    tables.push(table(100_000, 2, shared()));
    println!("[{}]", tables.join(","));
}

// ---- contestants

fn contestant(name: &'static str, call: impl Fn(&String) -> bool + Sync + 'static) -> Contestant {
    let all = move |keys: &[String]| {
        black_box(keys.iter().filter(|key| call(key)).count());
    };
    (name, Box::new(all))
}

/// Those that threads can share, each on the processor's counter.
fn shared() -> Vec<Contestant> {
    let limiter = Limiter::new(store(counter()), "tg", &limits());
    let reasons = Limiter::new(store(counter()), "tg", &limits());
    let map = RateLimiter::hashmap(quota());
    let dashmap = RateLimiter::dashmap(quota());
    let telling = RateLimiter::dashmap(quota()).with_middleware::<StateInformationMiddleware>();
    vec![
        contestant("tidegate consume, counter", move |key| limiter.consume(key, 1).allowed()),
        contestant("tidegate try_consume, counter", move |key| {
            reasons.try_consume(key, 1) == Reason::Ok
        }),
        contestant("governor, a map, counter", move |key| map.check_key(key).is_ok()),
        contestant("governor, a concurrent map, counter", move |key| {
            dashmap.check_key(key).is_ok()
        }),
        contestant("governor that tells what is left, counter", move |key| {
            telling.check_key(key).is_ok_and(|state| state.remaining_burst_capacity() > 0)
        }),
    ]
}

fn alone(keys: usize) -> Vec<Contestant> {
    let limiter = Limiter::new(store(instant()), "tg", &limits());
    let governor = RateLimiter::dashmap_with_clock(quota(), MonotonicClock);
    let crab = Mutex::new(throttlecrab::RateLimiter::new(AdaptiveStore::with_capacity(keys)));
    let (memory, limits) = (store(instant()), limits());
    let per_minute = i64::from(PER_MINUTE);
    let mut all = shared();
    all.extend([
        contestant("tidegate consume, Instant", move |key| limiter.consume(key, 1).allowed()),
        contestant("tidegate MemoryStore::call, Instant", move |key| {
            let key = &Key::new("tg", Kind::Limit, key);
            memory.call(&Call { key, op: Op::Consume { limits: &limits, cost: 1 } }).is_ok()
        }),
        contestant("governor, a concurrent map, Instant", move |key| {
            governor.check_key(key).is_ok()
        }),
        contestant("throttlecrab behind a lock, SystemTime", move |key| {
            let mut crab = crab.lock().unwrap();
            crab.rate_limit(key, per_minute, per_minute, 60, 1, SystemTime::now()).is_ok()
        }),
    ]);
    all
}

fn limits() -> Limits {
    let options = LimitOptions::new(u64::from(PER_MINUTE), Millis::from_ms(60_000));
    Limits::new(vec![Limit::new(&options).unwrap()]).unwrap()
}

fn quota() -> Quota {
    Quota::per_minute(NonZeroU32::new(PER_MINUTE).unwrap())
}

fn store<C: Fn() -> Timestamp>(now: C) -> Arc<MemoryStore<C>> {
    Arc::new(MemoryStore::new(MOST_KEYS, OnFull::Deny, now))
}

fn counter() -> impl Fn() -> Timestamp {
    let clock = quanta::Clock::new();
    let start = clock.raw();
    move || Timestamp::from_ms(clock.delta_as_nanos(start, clock.raw()) / 1_000_000)
}

fn instant() -> impl Fn() -> Timestamp {
    let start = Instant::now();
    move || Timestamp::from_ms(u64::try_from(start.elapsed().as_millis()).unwrap())
}

// ---- rounds

fn table(count: usize, threads: usize, contestants: Vec<Contestant>) -> String {
    let mut keys: Vec<_> = (0..count).map(|key| format!("user:{key}")).collect();
    contestants.iter().for_each(|(_, call)| call(&keys));
    shuffle(&mut keys);
    let mut rounds = vec![Vec::new(); contestants.len()];
    for round in 0..ROUNDS + 1 {
        for ((_, call), times) in contestants.iter().zip(&mut rounds) {
            let ns = timed(&keys, threads, call);
            // The first warms up.
            times.extend((round > 0).then_some(ns));
        }
    }
    let rows: Vec<_> = contestants
        .iter()
        .zip(&rounds)
        .map(|((name, _), times)| {
            let ratios = times.iter().zip(&rounds[0]).map(|(ns, ours)| ns / ours).collect();
            format!(
                r#"{{"name":"{name}","ns":{:.1},"ratio":{:.3}}}"#,
                middle(times.clone()),
                middle(ratios)
            )
        })
        .collect();
    format!(r#"{{"keys":{count},"threads":{threads},"rows":[{}]}}"#, rows.join(","))
}

/// Nanoseconds of a call, of threads that have as many keys each.
fn timed(keys: &[String], threads: usize, call: &(dyn Fn(&[String]) + Sync)) -> f64 {
    let times = CALLS.div_ceil(keys.len());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for part in keys.chunks(keys.len() / threads) {
            scope.spawn(move || (0..times).for_each(|_| call(part)));
        }
    });
    start.elapsed().as_nanos() as f64 / (keys.len() * times) as f64
}

/// The same order for everybody.
fn shuffle(keys: &mut [String]) {
    let mut state = 0x2545_f491_u32;
    for at in (1..keys.len()).rev() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        keys.swap(at, state as usize % (at + 1));
    }
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
