//! The single steps, each on a key whose state lies in the nearest cache. Part of `npm run bench -- native`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, Tag};
use tidegate::guard::{Guard, OnStoreError};
use tidegate::op::{self, Op, Record, Write};
use tidegate::tier::{Mode, Question, Tier, Verdict};
use tidegate::{
    Algorithm, Clock, Limit, LimitOptions, LimitRecord, LimiterId, Limits, MemoryTable, Millis,
    OnFull, Slot, Timestamp,
};

const NOW: Timestamp = Timestamp::from_ms(1_790_000_000_000);
const MINUTE: Millis = Millis::from_ms(60_000);
/// So much that no bench uses it up.
const PLENTY: u64 = 30_000_000_000;
const ALGORITHMS: [(&str, Algorithm); 3] = [
    ("leaky bucket", Algorithm::LeakyBucket),
    ("fixed window", Algorithm::FixedWindow),
    ("sliding window", Algorithm::SlidingWindow),
];

fn limits(algorithm: Algorithm, limit: u64) -> Limits {
    let options = LimitOptions { algorithm, ..LimitOptions::new(limit, MINUTE) };
    Limits::new(vec![Limit::new(&options).unwrap()]).unwrap()
}

/// A row of a table, with one unit used.
fn row(algorithm: Algorithm, limit: u64) -> (MemoryTable, LimiterId, Slot) {
    let mut table = MemoryTable::new(1_000, 1 << 20, OnFull::Deny);
    let limiter = table.register(limits(algorithm, limit));
    let slot = table.consume_new(limiter, 1, NOW).1.unwrap();
    (table, limiter, slot)
}

fn rows(group: &mut BenchmarkGroup<'_, WallTime>) {
    for (name, algorithm) in ALGORITHMS {
        for (outcome, limit) in [("admitted", PLENTY), ("denied", 1)] {
            let (mut table, limiter, slot) = row(algorithm, limit);
            group.bench_function(format!("{name}: consume on a row, {outcome}"), |bencher| {
                bencher.iter(|| table.consume(limiter, black_box(slot), 1, NOW).unwrap());
            });
            group.bench_function(format!("{name}: try_consume on a row, {outcome}"), |bencher| {
                bencher.iter(|| table.try_consume(limiter, black_box(slot), 1, NOW).unwrap());
            });
        }
    }
    let (mut table, limiter, slot) = row(Algorithm::LeakyBucket, 100);
    group.bench_function("peek on a row", |bencher| {
        bencher.iter(|| table.peek(limiter, Some(black_box(slot)), 1, NOW));
    });
    group.bench_function("consume and refund on a row", |bencher| {
        bencher.iter(|| {
            let decision = table.consume(limiter, black_box(slot), 1, NOW).unwrap();
            table.refund(limiter, slot, 1, NOW);
            decision
        });
    });
}

fn messages(group: &mut BenchmarkGroup<'_, WallTime>) {
    let first = MessageOp::First { ttl: MINUTE };
    let (mut table, mut now) = (MemoryTable::new(100_000, 0, OnFull::Deny), NOW);
    let short = MessageOp::First { ttl: Millis::from_ms(1_000) };
    group.bench_function("first, a new id in the place of an old one", |bencher| {
        bencher.iter(|| {
            now = now.plus(Millis::from_ms(1));
            while table.freed_message().is_some() {}
            table.message(None, &short, now).unwrap()
        });
    });
    let mut table = MemoryTable::new(1_000, 1 << 20, OnFull::Deny);
    let known = table.message(None, &first, NOW).unwrap().1;
    group.bench_function("first, a known id", |bencher| {
        bencher.iter(|| table.message(black_box(known), &first, NOW).unwrap());
    });
    let token = Tag::new("worker").unwrap();
    let claim = MessageOp::Claim { token: token.clone(), lease: MINUTE, payload: None };
    let commit = MessageOp::Commit { token, ttl: MINUTE, result: None, payload: None };
    group.bench_function("claim, commit, forget", |bencher| {
        bencher.iter(|| {
            let slot = table.message(None, &claim, NOW).unwrap().1;
            table.message(slot, &commit, NOW).unwrap();
            table.message(slot, &MessageOp::Forget, NOW).unwrap();
            table.freed_message()
        });
    });
}

fn observations(group: &mut BenchmarkGroup<'_, WallTime>) {
    for (name, trigger) in [("tumbling", Trigger::Tumbling), ("sliding", Trigger::Sliding)] {
        let policy = BurstPolicy::new(PLENTY, MINUTE, Millis::ZERO, trigger).unwrap();
        let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
        let slot = table.observe(None, &policy, 1, None, NOW).unwrap().1;
        group.bench_function(format!("observe, {name}"), |bencher| {
            bencher.iter(|| table.observe(black_box(slot), &policy, 1, None, NOW).unwrap());
        });
    }
}

/// What a conditional write and a Durable Object run.
fn texts(group: &mut BenchmarkGroup<'_, WallTime>) {
    for (name, algorithm) in ALGORITHMS {
        let limits = limits(algorithm, 1_000_000);
        let consume = Op::Consume { limits: &limits, cost: 1 };
        let next = |record: Option<Record>| match op::step(record, &consume, NOW, Clock::Store) {
            Ok((_, Write::Put(record, _))) => op::encode(&record).unwrap(),
            _ => panic!("it is admitted"),
        };
        let text = next(None);
        group.bench_function(format!("{name}: decode, step and encode a record"), |bencher| {
            bencher.iter(|| next(Some(op::decode(black_box(&text)).unwrap())));
        });
    }
}

/// A tier that holds a share of a key: the second question brings one.
fn leased(limits: &Limits) -> (Tier, u32, Slot) {
    let mut tier = Tier::new(Mode::Lease(PLENTY), Clock::Store, 1_000);
    let limiter = tier.register(limits.clone(), 1);
    let (mut shared, mut known) = (LimitRecord::default(), None);
    for _ in 0..2 {
        let (Verdict::Ask(ask), slot) = tier.ask(limiter, known, 1, NOW) else {
            panic!("nothing is held yet");
        };
        let Question::Reserve { cost, units } = ask.question else {
            panic!("a share is asked for");
        };
        let share = shared.reserve(limits, cost, units, NOW, Clock::Store).0.unwrap();
        tier.shared(&ask, &share, NOW);
        known = slot;
    }
    (tier, limiter, known.unwrap())
}

fn tiers(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (mut tier, limiter, slot) = leased(&limits(Algorithm::LeakyBucket, PLENTY));
    group.bench_function("lease: decide from the share", |bencher| {
        bencher.iter(|| tier.decide(limiter, black_box(slot), 1, NOW).unwrap());
    });
    let mut guard = Guard::new(OnStoreError::Deny);
    group.bench_function("guard: ask and be answered", |bencher| {
        bencher.iter(|| {
            let asks = guard.ask(black_box(NOW));
            guard.answered();
            asks
        });
    });
}

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("steps");
    rows(&mut group);
    messages(&mut group);
    observations(&mut group);
    texts(&mut group);
    tiers(&mut group);
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).without_plots()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = steps
}
criterion_main!(benches);
