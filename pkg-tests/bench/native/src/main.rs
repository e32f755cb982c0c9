//! Runs one of the steps a number of times: `steps NAME TIMES`. What counts instructions runs it twice and takes the
//! difference, so that neither start-up nor what is made ready counts.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

use std::hint::black_box;
use std::sync::Arc;

use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::MessageOp;
use tidegate::op::{self, Op, Record, Write};
use tidegate::{
    Algorithm, Clock, Limit, LimitOptions, Limiter, Limits, MemoryStore, MemoryTable, Millis,
    OnFull, Reason, Timestamp,
};

const START: Timestamp = Timestamp::from_ms(1_790_000_000_000);

/// A step of the `turn`-th call.
type Step = Box<dyn FnMut(u64)>;

fn main() {
    let mut args = std::env::args().skip(1);
    let (name, times) = (args.next().expect("a name"), args.next().expect("how many times"));
    let mut step = named(&name).expect("a known name");
    for turn in 0..times.parse().expect("a number") {
        step(turn);
    }
}

fn named(name: &str) -> Option<Step> {
    Some(match name {
        "row-admitted" => on_a_row(1_000_000_000, Reason::Ok),
        "row-denied" => on_a_row(1, Reason::Limited),
        "text-bucket" => on_text(Algorithm::LeakyBucket),
        "text-fixed" => on_text(Algorithm::FixedWindow),
        "text-sliding" => on_text(Algorithm::SlidingWindow),
        "row-first" => first(),
        "keyed-known" => keyed(),
        "text-observe" => observe(),
        _ => return None,
    })
}

fn limits(algorithm: Algorithm, limit: u64) -> Limits {
    let options = LimitOptions { algorithm, ..LimitOptions::new(limit, Millis::from_ms(60_000)) };
    Limits::new(vec![Limit::new(&options).unwrap()]).unwrap()
}

/// Among a thousand keys, the hot path of a handle.
fn on_a_row(limit: u64, expected: Reason) -> Step {
    let mut table = MemoryTable::new(1_000_000, 0, OnFull::Deny);
    let limiter = table.register(limits(Algorithm::LeakyBucket, limit));
    let slots: Vec<_> =
        (0..1_000).map(|_| table.consume_new(limiter, 1, START).1.unwrap()).collect();
    let now = START.plus(Millis::from_ms(1));
    let mut places = slots.into_iter().cycle();
    Box::new(move |_| {
        let slot = places.next().unwrap();
        assert_eq!(black_box(table.try_consume(limiter, slot, 1, now)), Some(expected));
    })
}

/// Among a thousand keys, from their strings, as a Rust host asks for a decision.
fn keyed() -> Step {
    let store = Arc::new(MemoryStore::new(1_000_000, OnFull::Deny, || START));
    let limiter = Limiter::new(store, "tg", &limits(Algorithm::LeakyBucket, 1_000_000_000));
    let keys: Vec<_> = (0..1_000).map(|key| format!("user:{key}")).collect();
    for key in &keys {
        assert!(limiter.consume(key, 1).allowed());
    }
    let mut places = (0..keys.len()).cycle();
    Box::new(move |_| {
        let key = places.next().and_then(|place| keys.get(place)).unwrap();
        assert!(black_box(limiter.consume(key, 1)).allowed());
    })
}

/// What a conditional write and a Durable Object run: a record is read, stepped and written.
fn on_text(algorithm: Algorithm) -> Step {
    let limits = limits(algorithm, 1_000_000);
    let mut text: Option<String> = None;
    Box::new(move |turn| {
        let now = START.plus(Millis::from_ms(turn));
        run(&mut text, &Op::Consume { limits: &limits, cost: 1 }, now);
    })
}

fn observe() -> Step {
    let policy =
        BurstPolicy::new(100, Millis::from_ms(10_000), Millis::ZERO, Trigger::Tumbling).unwrap();
    let mut text: Option<String> = None;
    Box::new(move |turn| {
        let now = START.plus(Millis::from_ms(turn));
        run(&mut text, &Op::Observe { policy: &policy, weight: 1, nonce: None }, now);
    })
}

fn run(text: &mut Option<String>, op: &Op<'_>, now: Timestamp) {
    let record: Option<Record> = text.as_deref().map(|text| op::decode(text).unwrap());
    let (reply, write) = op::step(record, op, now, Clock::Store).unwrap();
    black_box(reply);
    if let Write::Put(record, _) = write {
        *text = op::encode(&record);
    }
}

/// New ids, each in a row of its own.
fn first() -> Step {
    let mut table = MemoryTable::new(1_000_000, 0, OnFull::Deny);
    let op = MessageOp::First { ttl: Millis::from_ms(60_000) };
    Box::new(move |_| {
        black_box(table.message(None, &op, START).ok());
    })
}
