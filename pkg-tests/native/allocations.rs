//! What a decision on a row asks of the allocator: nothing.
#![allow(unsafe_code, clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::{
    Algorithm, Limit, LimitOptions, LimiterId, Limits, MemoryTable, Millis, OnFull, Reason, Slot,
    Timestamp,
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

fn row(table: &mut MemoryTable, algorithm: Algorithm, limit: u64) -> (LimiterId, Slot) {
    let options = LimitOptions { algorithm, ..LimitOptions::new(limit, Millis::from_ms(60_000)) };
    let limits = Limits::new(vec![Limit::new(&options).unwrap()]).unwrap();
    let limiter = table.register(limits);
    (limiter, table.consume_new(limiter, 1, START).1.unwrap())
}

/// The only test of this program: what others allocate would be counted, too.
#[test]
fn a_decision_on_a_row_allocates_nothing() {
    let algorithms = [Algorithm::LeakyBucket, Algorithm::FixedWindow, Algorithm::SlidingWindow];
    for algorithm in algorithms {
        let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
        let (limiter, slot) = row(&mut table, algorithm, 1_000);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let mut admitted = 0;
        for turn in 0..2_000 {
            let now = START.plus(Millis::from_ms(turn / 100));
            let reason = table.try_consume(limiter, slot, 1, now);
            admitted += u64::from(reason == Some(Reason::Ok));
            let decision = table.consume(limiter, slot, 1, now).unwrap();
            admitted += u64::from(decision.reason == Reason::Ok);
        }
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before, "{algorithm:?}");
        assert_eq!(admitted, 999, "{algorithm:?}: some are admitted and some are not");
    }
}
