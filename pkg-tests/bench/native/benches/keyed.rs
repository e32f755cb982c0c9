//! Native decisions by key: a hundred thousand keys in an order that no cache foresees, half of the calls admitted
//! in the end. `cargo bench --manifest-path pkg-tests/bench/native/Cargo.toml`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::num::NonZeroU32;
use std::time::{SystemTime, UNIX_EPOCH};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use governor::{Quota, RateLimiter};
use tidegate::op::Op;
use tidegate::{
    Call, Key, Kind, Limit, LimitOptions, Limits, MemoryStore, Millis, OnFull, Timestamp,
};
use throttlecrab::AdaptiveStore;

const KEYS: usize = 100_000;
const PER_MINUTE: u32 = 60;

/// The same keys in the same order for everybody.
fn keys() -> Vec<String> {
    let mut keys: Vec<_> = (0..KEYS).map(|key| format!("user:{key}")).collect();
    let mut state = 0x2545_f491_u32;
    for at in (1..KEYS).rev() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        keys.swap(at, state as usize % (at + 1));
    }
    keys
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_ms(u64::try_from(since.as_millis()).unwrap())
}

fn limits() -> Limits {
    let options = LimitOptions::new(u64::from(PER_MINUTE), Millis::from_ms(60_000));
    Limits::new(vec![Limit::new(&options).unwrap()]).unwrap()
}

/// Calls every key once a round; what a round decides is not looked at, only that it is done.
fn rounds<K>(c: &mut Criterion, name: &str, keys: &[K], mut call: impl FnMut(&K) -> bool) {
    let mut group = c.benchmark_group("keyed");
    group.throughput(Throughput::Elements(KEYS as u64)).sample_size(10);
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            || (),
            |()| keys.iter().filter(|key| call(key)).count(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn keyed(c: &mut Criterion) {
    let keys = keys();
    let limits = limits();
    let store = MemoryStore::new(1_000_000, OnFull::Deny, now);
    let made: Vec<_> = keys.iter().map(|key| Key::new("tg", Kind::Limit, key)).collect();
    rounds(c, "tidegate, keys made once", &made, |key| {
        let op = Op::Consume { limits: &limits, cost: 1 };
        store.call(&Call { key, op }).is_ok()
    });

    let store = MemoryStore::new(1_000_000, OnFull::Deny, now);
    rounds(c, "tidegate, from strings", &keys, |key| {
        let key = &Key::new("tg", Kind::Limit, key);
        let op = Op::Consume { limits: &limits, cost: 1 };
        store.call(&Call { key, op }).is_ok()
    });

    let quota = Quota::per_minute(NonZeroU32::new(PER_MINUTE).unwrap());
    let governor = RateLimiter::hashmap(quota);
    rounds(c, "governor, a map behind a lock", &keys, |key| governor.check_key(key).is_ok());
    let governor = RateLimiter::dashmap(quota);
    rounds(c, "governor, a concurrent map", &keys, |key| governor.check_key(key).is_ok());

    let mut crab = throttlecrab::RateLimiter::new(AdaptiveStore::with_capacity(KEYS));
    let per_minute = i64::from(PER_MINUTE);
    rounds(c, "throttlecrab", &keys, |key| {
        crab.rate_limit(key, per_minute, per_minute, 60, 1, SystemTime::now()).is_ok()
    });
}

criterion_group!(benches, keyed);
criterion_main!(benches);
