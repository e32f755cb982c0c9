//! What decisions ask of the allocator: nothing, where the key is known.
#![allow(unsafe_code, clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::dedup::{MessageOp, MessageReply};
use tidegate::op::{Op, Reply};
use tidegate::{
    Algorithm, Call, Key, Kind, Limit, LimitOptions, Limiter, Limits, MemoryStore, MemoryTable,
    Millis, OnFull, Reason, Timestamp,
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counted;

// SAFETY: it counts, and leaves everything else to the system's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const START: Timestamp = Timestamp::from_ms(1_790_000_000_000);

fn limits(algorithm: Algorithm, limit: u64) -> Limits {
    let options = LimitOptions { algorithm, ..LimitOptions::new(limit, Millis::from_ms(60_000)) };
    Limits::new(vec![Limit::new(&options).unwrap()]).unwrap()
}

fn allocations(step: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    step();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// The only test of this program: what others allocate would be counted, too.
#[test]
fn what_is_known_is_decided_without_the_allocator() {
    for algorithm in [Algorithm::LeakyBucket, Algorithm::FixedWindow, Algorithm::SlidingWindow] {
        on_a_row(algorithm);
        in_a_store(algorithm);
    }
    peeks();
    messages();
    new_keys();
}

fn on_a_row(algorithm: Algorithm) {
    let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
    let limiter = table.register(limits(algorithm, 1_000));
    let slot = table.consume_new(limiter, 1, START).1.unwrap();
    let mut admitted = 0;
    let count = allocations(|| {
        for turn in 0..2_000 {
            let now = START.plus(Millis::from_ms(turn / 100));
            let reason = table.try_consume(limiter, slot, 1, now);
            admitted += u64::from(reason == Some(Reason::Ok));
            let decision = table.consume(limiter, slot, 1, now).unwrap();
            admitted += u64::from(decision.allowed());
        }
    });
    assert_eq!(count, 0, "{algorithm:?}");
    assert_eq!(admitted, 999, "{algorithm:?}: some are admitted and some are not");
}

fn in_a_store(algorithm: Algorithm) {
    let store = MemoryStore::new(1_000, OnFull::Deny, || START);
    let limits = limits(algorithm, 1_000);
    let limiter = Limiter::new(&store, "tg", &limits);
    // The one that does not lie in the index itself is not to be copied, either.
    for own in ["user:42", "a key of more than thirty characters"] {
        let key = &Key::new("tg", Kind::Limit, own);
        assert!(limiter.consume(own, 1).allowed());
        let mut admitted = 0;
        let count = allocations(|| {
            for _ in 0..500 {
                let op = Op::Consume { limits: &limits, cost: 1 };
                let answer = store.call(&Call { key, op });
                let called = matches!(answer, Ok(Reply::Decision(decision)) if decision.allowed());
                let tried = limiter.try_consume(own, 1) == Reason::Ok;
                let consumed = limiter.consume(own, 1).allowed();
                admitted += [called, tried, consumed].map(u64::from).iter().sum::<u64>();
            }
        });
        assert_eq!(count, 0, "{algorithm:?}, {own}");
        assert_eq!(admitted, 999, "{algorithm:?}: some are admitted and some are not");
    }
}

/// A peek looks at a record made of the row, which is no hot path: its limit's name, one list of entries, one of seats.
fn peeks() {
    let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
    let limiter = table.register(limits(Algorithm::LeakyBucket, 1_000));
    let slot = table.consume_new(limiter, 1, START).1;
    let count = allocations(|| assert_eq!(table.peek(limiter, slot, 1, START).remaining, 999));
    assert_eq!(count, 3);
}

fn messages() {
    let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
    let first = MessageOp::First { ttl: Millis::from_ms(60_000) };
    let slot = table.message(None, &first, START).unwrap().1;
    let again = allocations(|| {
        let (reply, _) = table.message(slot, &first, START).unwrap();
        assert_ne!(reply, MessageReply::Flag(true));
    });
    let other = allocations(|| drop(table.message(None, &first, START).unwrap()));
    assert_eq!((again, other), (0, 0), "an id that is known, and one that has its row already");
}

/// What many new keys cost: chunks of rows and the doublings of the index, and each long key's text.
fn new_keys() {
    let limits = limits(Algorithm::LeakyBucket, 1_000);
    let cost = |own: &dyn Fn(u32) -> String| {
        let store = MemoryStore::new(100_000, OnFull::Deny, || START);
        let limiter = Limiter::new(&store, "tg", &limits);
        let keys: Vec<_> = (0..10_000).map(own).collect();
        allocations(|| assert!(keys.iter().all(|key| limiter.consume(key, 1).allowed())))
    };
    let short = cost(&|key| format!("user:{key}"));
    let long = cost(&|key| format!("a user with a rather long name: {key}"));
    println!("10 000 new keys: {short} allocations; with long names {long}");
    assert!(short < 100, "{short} allocations for 10 000 keys");
    assert!((10_000..10_100).contains(&long), "{long} allocations for 10 000 long keys");
}
