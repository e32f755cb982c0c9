//! The memory table: bounded, and yet as good as one without a bound for every key that it holds.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, MessageReply, Tag};
use tidegate::op::{Op, Reply};
use tidegate::{
    Algorithm, Call, Clock, Decision, Full, Key, Kind, Limit, LimitOptions, LimitRecord, Limiter,
    LimiterId, Limits, MemoryStore, MemoryTable, Millis, OnFull, Reason, Slot, Timestamp,
};

const ROOM: usize = 1 << 20;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn ms(ms: u64) -> Millis {
    Millis::from_ms(ms)
}

fn bucket(limit: u64, window: u64) -> Limits {
    Limits::new(vec![Limit::new(&LimitOptions::new(limit, ms(window))).unwrap()]).unwrap()
}

/// A slot as an index knows it that is always told what was freed.
const fn by_index(slot: Slot) -> Slot {
    Slot { generation: Slot::ANY, ..slot }
}

// ---- a table with an index, as its hosts have one

struct Table {
    table: MemoryTable,
    slots: HashMap<u32, Slot>,
    keys: HashMap<u32, u32>,
    /// What every key remembers, without a bound.
    records: HashMap<u32, LimitRecord>,
    most: u32,
}

impl Table {
    fn new(most: u32, on_full: OnFull) -> Self {
        Self {
            table: MemoryTable::new(most, ROOM, on_full),
            slots: HashMap::new(),
            keys: HashMap::new(),
            records: HashMap::new(),
            most,
        }
    }

    /// Forgets what was freed, which must have been whole.
    fn forget_freed(&mut self, now: u64) {
        while let Some(index) = self.table.freed_limit() {
            let key = self.keys.remove(&index).expect("freed once");
            self.slots.remove(&key);
            let record = self.records.remove(&key).expect("of a key in use");
            assert!(record.whole_at() <= at(now), "evicted while in use: {record:?} at {now}");
        }
        assert!(self.table.len() <= self.most, "beyond the bound");
    }

    fn check(&mut self, now: u64) {
        self.forget_freed(now);
        assert_eq!(self.table.len() as usize, self.slots.len(), "all that is held is indexed");
    }

    fn placed(&mut self, key: u32, slot: Slot) {
        self.slots.insert(key, slot);
        self.keys.insert(slot.index, key);
    }

    fn slot(&self, key: u32) -> Option<Slot> {
        self.slots.get(&key).copied().map(by_index)
    }

    /// Consumes, and judges by the unbounded record; `None` when there was no room.
    fn consume(
        &mut self,
        key: u32,
        limiter: LimiterId,
        limits: &Limits,
        cost: u64,
        now: u64,
    ) -> Option<Decision> {
        let mut record = self.records.get(&key).cloned().unwrap_or_default();
        let (expected, _) = record.consume(limits, cost, at(now), Clock::Store);
        let decision = match self.slot(key) {
            Some(slot) => self.table.consume(limiter, slot, cost, at(now)).expect("a slot in use"),
            None => {
                let (decision, slot) = self.table.consume_new(limiter, cost, at(now));
                self.forget_freed(now);
                match slot {
                    Some(slot) => self.placed(key, slot),
                    None if expected.allowed() => return self.refused(&decision, now),
                    None => {}
                }
                decision
            }
        };
        assert_eq!(decision, expected, "key {key} at {now}");
        self.remember(key, record);
        self.check(now);
        Some(decision)
    }

    /// There was no room: every key is in use, and the decision says until when.
    fn refused(&self, decision: &Decision, now: u64) -> Option<Decision> {
        assert_eq!((decision.reason, decision.remaining), (Reason::Limited, 0));
        assert_eq!(decision.retry_after, Some(decision.reset_after));
        self.full(at(now).plus(decision.reset_after), now);
        None
    }

    fn full(&self, until: Timestamp, now: u64) {
        assert_eq!(self.records.len(), self.most as usize, "there was room");
        let next = self.records.values().map(LimitRecord::whole_at).min().unwrap();
        assert!(next > at(now), "a key was whole");
        assert_eq!(until, next, "until the next key is whole");
    }

    fn remember(&mut self, key: u32, record: LimitRecord) {
        if self.slots.contains_key(&key) {
            self.records.insert(key, record);
        }
    }
}

// ---- every operation on few keys in a small table

#[derive(Clone, Copy, Debug)]
enum Act {
    Consume,
    Handle,
    TakeHandle,
    Peek,
    Refund,
    Block,
    Unblock,
    Reset,
}

type Step = (Act, u32, usize, u64, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        8 => Just(Act::Consume),
        4 => Just(Act::Handle),
        2 => Just(Act::TakeHandle),
        2 => Just(Act::Peek),
        2 => Just(Act::Refund),
        1 => Just(Act::Block),
        1 => Just(Act::Unblock),
        1 => Just(Act::Reset),
    ];
    let passed = prop_oneof![5 => Just(0), 3 => 1..5_u64, 1 => 1..100_u64];
    vec((act, 0..8_u32, 0..6_usize, 1..4_u64, passed), 1..120)
}

fn limiters() -> Vec<Limits> {
    let limit = |name: &str, algorithm, limit, window| {
        let options =
            LimitOptions { name: name.into(), algorithm, ..LimitOptions::new(limit, ms(window)) };
        Limit::new(&options).unwrap()
    };
    let limits = |limits| Limits::new(limits).unwrap();
    vec![
        bucket(3, 10),
        bucket(7, 60),
        limits(vec![limit("default", Algorithm::FixedWindow, 3, 20)]),
        limits(vec![limit("other", Algorithm::SlidingWindow, 3, 16)]),
        limits(vec![
            limit("a", Algorithm::LeakyBucket, 2, 7),
            limit("default", Algorithm::SlidingWindow, 5, 30),
        ]),
        limits(vec![limit("default", Algorithm::LeakyBucket, 1, 50)]),
    ]
}

/// Handles keep a slot with its generation; all else goes by index, whatever the generation.
fn run(most: u32, steps: &[Step]) {
    let mut table = Table::new(most, OnFull::Deny);
    let limiters: Vec<_> = limiters()
        .into_iter()
        .map(|limits| (table.table.register(limits.clone()), limits))
        .collect();
    let mut handles: HashMap<u32, Slot> = HashMap::new();
    let mut now = 1_000;
    for (act, key, limiter, cost, passed) in steps.iter().copied() {
        now += passed;
        let (limiter, limits) = &limiters[limiter];
        let mut record = table.records.get(&key).cloned().unwrap_or_default();
        match act {
            Act::Consume => drop(table.consume(key, *limiter, limits, cost, now)),
            Act::TakeHandle => {
                if let Some(slot) = table.slot(key) {
                    let generation = table.table.limit_generation(slot.index).expect("in use");
                    handles.insert(key, Slot { generation, ..slot });
                }
            }
            Act::Handle => {
                let Some(handle) = handles.get(&key).copied() else {
                    continue;
                };
                let (expected, _) = record.consume(limits, cost, at(now), Clock::Store);
                // Every other one asks for no more than the reason.
                let decision = if now % 2 == 0 {
                    table.table.consume(*limiter, handle, cost, at(now))
                } else {
                    let reason = table.table.try_consume(*limiter, handle, cost, at(now));
                    assert!(reason.is_none_or(|reason| reason == expected.reason));
                    reason.map(|_| expected)
                };
                match decision {
                    Some(decision) => {
                        assert!(table.slots.contains_key(&key), "a handle outlived its key");
                        assert_eq!(decision, expected, "handle of key {key}");
                        table.remember(key, record.clone());
                    }
                    None => {
                        let slot = table.slot(key).map(|slot| Slot {
                            generation: table.table.limit_generation(slot.index).unwrap(),
                            ..slot
                        });
                        assert_ne!(slot, Some(handle), "not stale");
                    }
                }
            }
            Act::Peek => {
                let slot = table.slot(key);
                let decision = table.table.peek(*limiter, slot, cost, at(now));
                table.forget_freed(now);
                let expected = record.peek(limits, cost, at(now), Clock::Store);
                if decision.allowed() == expected.allowed() {
                    assert_eq!(decision, expected);
                } else {
                    assert_eq!(slot, None, "only a new key finds no room");
                    table.refused(&decision, now);
                }
            }
            Act::Refund => {
                if let Some(slot) = table.slot(key) {
                    record.refund(limits, cost, at(now), Clock::Store);
                    table.table.refund(*limiter, slot, cost, at(now));
                }
            }
            Act::Block => {
                record.block(ms(cost * 10), at(now), Clock::Store);
                let blocked = table.table.block(table.slot(key), ms(cost * 10), at(now));
                table.forget_freed(now);
                match blocked {
                    Ok(slot) if slot.generation == Slot::ANY => {}
                    Ok(slot) => table.placed(key, slot),
                    Err(Full { until }) => table.full(until, now),
                }
            }
            Act::Unblock => {
                if let Some(slot) = table.slot(key) {
                    record.unblock();
                    table.table.unblock(slot);
                }
            }
            Act::Reset => {
                if let Some(slot) = table.slot(key) {
                    record.reset(limits);
                    table.table.reset(*limiter, slot);
                }
            }
        }
        if matches!(act, Act::Refund | Act::Block | Act::Unblock | Act::Reset) {
            table.remember(key, record);
        }
        table.check(now);
    }
}

#[test]
fn a_table_with_room_decides_as_one_without_a_bound() {
    proptest!(support::config(20_000, 60), |(steps in steps())| run(1_000, &steps));
}

#[test]
fn a_full_table_evicts_only_whole_keys_and_says_when_the_next_one_is() {
    proptest!(support::config(20_000, 60), |(most in 1..5_u32, steps in steps())| run(most, &steps));
}

#[test]
fn keys_of_many_policies_keep_their_own() {
    let mut table = Table::new(500, OnFull::Deny);
    let mut registered = Vec::new();
    for number in 0..400_u32 {
        let limits = bucket(u64::from(number % 37) + 1, 1_000 + u64::from(number));
        registered.push((table.table.register(limits.clone()), limits));
    }
    for round in 0..3_u64 {
        for (key, (limiter, limits)) in (0..).zip(&registered) {
            table.consume(key, *limiter, limits, 1, 5_000 + round);
        }
        // A Limiter that goes leaves its keys as they are, and its number to the next.
        for (limiter, limits) in registered.iter_mut().step_by(7) {
            table.table.unregister(*limiter);
            *limiter = table.table.register(limits.clone());
        }
    }
}

#[test]
fn a_large_table_evicts_in_order_and_takes_as_many_again() {
    const MOST: u32 = 10_000;
    let mut table = Table::new(MOST, OnFull::Deny);
    let (slow, fast) = (bucket(1, 1_000_000), bucket(1, 1_000));
    let (slow_id, fast_id) =
        (table.table.register(slow.clone()), table.table.register(fast.clone()));
    for key in 0..MOST {
        // One key in a hundred is over soon, at a time of its own.
        let (id, limits) = if key % 100 == 37 { (fast_id, &fast) } else { (slow_id, &slow) };
        assert!(table.consume(key, id, limits, 1, u64::from(key)).unwrap().allowed());
    }
    let mut now = u64::from(MOST);
    // All that were over before now are free again, and no more.
    let over = (0..MOST).filter(|key| key % 100 == 37 && u64::from(*key) + 1_000 <= now).count();
    for key in MOST..MOST + u32::try_from(over).unwrap() {
        assert!(table.consume(key, slow_id, &slow, 1, now).is_some(), "room for {key}");
    }
    for key in 2 * MOST..2 * MOST + 5 {
        let (decision, slot) = table.table.consume_new(slow_id, 1, at(now));
        assert!(!decision.allowed() && slot.is_none());
        let wait = decision.retry_after.unwrap().as_ms();
        assert!(
            table.consume(key, slow_id, &slow, 1, now + wait - 1).is_none(),
            "one millisecond early"
        );
        now += wait;
        assert!(table.consume(key, slow_id, &slow, 1, now).is_some(), "room for {key}");
    }
}

#[test]
fn new_keys_share_one_budget_when_asked_to() {
    let limits = bucket(3, 1_000);
    let mut table = Table::new(2, OnFull::Share);
    let limiter = table.table.register(limits.clone());
    for key in 0..2 {
        assert_eq!(table.consume(key, limiter, &limits, 3, 0).unwrap().remaining, 0);
    }
    let mut shared = LimitRecord::default();
    for now in [0, 0, 0, 0, 400, 500, 999] {
        let (decision, slot) = table.table.consume_new(limiter, 1, at(now));
        assert_eq!(
            (decision, slot),
            (shared.consume(&limits, 1, at(now), Clock::Store).0, None),
            "at {now}"
        );
    }
    // Known keys have their own, and a new one gets its own as soon as there is room.
    assert!(table.consume(0, limiter, &limits, 2, 999).unwrap().allowed());
    assert!(table.consume(7, limiter, &limits, 3, 1_000).unwrap().allowed(), "key 1 is whole");
}

// ---- the store with its own index

/// Plain keys, one that is escaped, and ones that are too long to stand in a key or in its place in the index.
fn store_keys() -> Vec<String> {
    let plain = (0..40).map(|key| format!("user:{key}"));
    let others = ["", ":l:", "%", "ключ", "{tag}"].map(String::from);
    plain.chain(others).chain([40, 200, 201].map(|len| "k".repeat(len))).collect()
}

#[test]
fn a_limiter_decides_as_calls_on_its_keys_do_however_full_the_store() {
    let keys = store_keys();
    let step = (0..keys.len(), 0..6_usize, 1..3_u64, 0..4_u64, any::<bool>());
    let run = |most, steps: &[(usize, usize, u64, u64, bool)]| {
        let now = std::cell::Cell::new(1_000);
        let store = || MemoryStore::new(most, OnFull::Deny, || at(now.get()));
        let (by_limiter, by_call) = (store(), store());
        let limits = limiters();
        let limiters: Vec<_> =
            limits.iter().map(|limits| Limiter::new(&by_limiter, "a:b", limits)).collect();
        for (key, limiter, cost, passed, whole) in steps.iter().copied() {
            now.set(now.get() + passed);
            let op = Op::Consume { limits: &limits[limiter], cost };
            let call = Call { key: &Key::new("a:b", Kind::Limit, &keys[key]), op };
            let Ok(Reply::Decision(expected)) = by_call.call(&call) else { panic!("it decides") };
            let limiter = &limiters[limiter];
            if whole {
                assert_eq!(limiter.consume(&keys[key], cost), expected);
            } else {
                assert_eq!(limiter.try_consume(&keys[key], cost), expected.reason);
            }
        }
    };
    proptest!(support::config(2_000, 60), |(most in 1..60_u32, steps in vec(step, 1..300))| {
        run(most, &steps);
    });
}

#[test]
fn keys_of_a_limiter_are_those_of_calls() {
    let now = std::cell::Cell::new(1_000);
    let store = MemoryStore::new(100, OnFull::Deny, || at(now.get()));
    let limits = bucket(1, 1_000);
    let limiter = Limiter::new(&store, "p", &limits);
    let other = Limiter::new(&store, "p:", &limits);
    for key in store_keys() {
        assert!(limiter.consume(&key, 1).allowed() && !limiter.consume(&key, 1).allowed());
        assert!(other.consume(&key, 1).allowed(), "another prefix has keys of its own");
        let name = Key::new("p", Kind::Limit, &key);
        let reset = Call { key: &name, op: Op::Reset { limits: &limits } };
        assert_eq!(store.call(&reset), Ok(Reply::Done));
        assert!(limiter.consume(&key, 1).allowed(), "{key:?} was reset");
        now.set(now.get() + 1_000);
    }
}

#[test]
fn limits_ids_and_identities_have_a_share_each() {
    let mut table = MemoryTable::new(2, ROOM, OnFull::Deny);
    let limiter = table.register(bucket(1, 1_000));
    let first = MessageOp::First { ttl: ms(1_000) };
    let policy = BurstPolicy::new(1, ms(1_000), Millis::ZERO, Trigger::Tumbling).unwrap();
    for _ in 0..2 {
        assert!(table.consume_new(limiter, 1, at(0)).0.allowed());
        assert!(table.message(None, &first, at(0)).is_ok());
        assert!(table.observe(None, &policy, 1, None, at(0)).is_ok());
    }
    assert_eq!(table.len(), 6);
    assert!(!table.consume_new(limiter, 1, at(0)).0.allowed());
    assert_eq!(table.message(None, &first, at(0)), Err(Full { until: at(1_000) }));
    assert_eq!(table.observe(None, &policy, 1, None, at(0)), Err(Full { until: at(3_000) }));
    // What asks without anything to remember needs no room.
    assert_eq!(table.message(None, &MessageOp::Look, at(0)), Ok((MessageReply::Absent, None)));
    // Each makes room when its own are over, not before.
    assert!(table.message(None, &first, at(999)).is_err());
    assert!(table.message(None, &first, at(1_000)).is_ok());
    assert!(table.observe(None, &policy, 1, None, at(2_999)).is_err());
    assert!(table.observe(None, &policy, 1, None, at(3_000)).is_ok());
}

#[test]
fn a_claim_or_a_remembered_id_is_never_evicted() {
    let ops = vec((0..6_u32, any::<bool>(), 1..20_u64, 0..6_u64), 1..100);
    proptest!(support::config(10_000, 50), |(most in 1..4_u32, ops in ops)| {
        let mut table = MemoryTable::new(most, ROOM, OnFull::Deny);
        let (mut slots, mut ends): (HashMap<u32, Slot>, HashMap<u32, u64>) = Default::default();
        let mut now = 0;
        for (number, (id, claims, span, passed)) in ops.into_iter().enumerate() {
            now += passed;
            let token = Tag::new(&format!("t{number}")).unwrap();
            let op = if claims {
                MessageOp::Claim { token, lease: ms(span), payload: None }
            } else {
                MessageOp::First { ttl: ms(span) }
            };
            let answer = table.message(slots.get(&id).copied(), &op, at(now));
            while let Some(index) = table.freed_message() {
                let freed = *slots.iter().find(|(_, slot)| slot.index == index).expect("freed once").0;
                slots.remove(&freed);
                prop_assert!(ends.remove(&freed).unwrap() <= now, "evicted while it counts");
            }
            let free = ends.get(&id).is_none_or(|end| now >= *end);
            match answer {
                Ok((reply, slot)) => {
                    prop_assert_eq!(matches!(reply, MessageReply::Fresh | MessageReply::Flag(true)), free);
                    if free {
                        slots.insert(id, slot.expect("something to remember"));
                        ends.insert(id, now + span);
                    }
                }
                Err(Full { until }) => {
                    prop_assert_eq!(ends.len(), most as usize);
                    prop_assert_eq!(Some(&until.as_ms()), ends.values().min());
                    prop_assert!(until > at(now));
                }
            }
            prop_assert_eq!(table.len() as usize, slots.len());
        }
    });
}

#[test]
fn stale_slots_touch_nobody() {
    let mut table = MemoryTable::new(1, ROOM, OnFull::Deny);
    let limiter = table.register(bucket(2, 1_000));
    let old = table.consume_new(limiter, 1, at(0)).1.unwrap();
    // The only row goes to another key once the first is whole.
    let new = table.consume_new(limiter, 1, at(5_000)).1.unwrap();
    assert_eq!((new.index, table.freed_limit()), (old.index, Some(old.index)));
    assert_eq!(table.consume(limiter, old, 1, at(5_000)), None);
    assert_eq!(table.try_consume(limiter, old, 1, at(5_000)), None);
    table.refund(limiter, old, 1, at(5_000));
    table.unblock(old);
    table.reset(limiter, old);
    let peeked = table.peek(limiter, Some(old), 1, at(5_000));
    assert_eq!((peeked.allowed(), peeked.remaining), (false, 0), "as a new key, without room");
    assert!(table.block(Some(old), ms(10), at(5_000)).is_err(), "and so it needs one of its own");
    assert_eq!(table.peek(limiter, Some(new), 1, at(5_000)).remaining, 1);
}

/// A host keeps generations in its handles and goes by index elsewhere; both name the same row.
#[test]
fn a_handle_stays_its_keys_whatever_is_done_by_index() {
    let mut table = MemoryTable::new(1, ROOM, OnFull::Deny);
    let limiter = table.register(bucket(2, 1_000));
    let handle = table.consume_new(limiter, 1, at(0)).1.unwrap();
    table.block(Some(by_index(handle)), ms(100), at(0)).unwrap();
    let blocked = table.consume(limiter, handle, 1, at(0)).expect("still the same row");
    assert_eq!(blocked.reason, Reason::Blocked);
    assert_eq!(table.limit_generation(handle.index), Some(handle.generation));
    // Another key takes the row over.
    let found = Slot { generation: table.limit_generation(handle.index).unwrap(), ..handle };
    table.consume_new(limiter, 1, at(5_000)).1.unwrap();
    assert_eq!(
        table.consume(limiter, found, 1, at(5_000)),
        None,
        "the other key's budget is its own"
    );
}

// ---- stored results

fn done(token: &str, result: &str) -> MessageOp {
    let token = Tag::new(token).unwrap();
    MessageOp::Commit { token, ttl: ms(1_000), result: Some(result.into()), payload: None }
}

fn result(table: &mut MemoryTable, slot: Slot) -> Option<Box<str>> {
    match table.message(Some(slot), &MessageOp::Look, at(1)).unwrap().0 {
        MessageReply::Duplicate { result } => result,
        other => panic!("{other:?}"),
    }
}

fn kept(table: &mut MemoryTable, text: &str) -> (Slot, bool) {
    let slot = table.message(None, &done("t", text), at(0)).unwrap().1.unwrap();
    (slot, result(table, slot).is_some())
}

#[test]
fn results_beyond_the_bytes_are_remembered_as_done_only() {
    let mut table = MemoryTable::new(100, 20, OnFull::Deny);
    assert!(kept(&mut table, "0123456789").1);
    assert!(!kept(&mut table, "0123456789a").1, "one too many");
    assert!(kept(&mut table, "0123456789").1, "just enough");
    assert!(!kept(&mut table, "1").1);
}

#[test]
fn a_forgotten_result_makes_room_for_itself_alone() {
    let mut table = MemoryTable::new(100, 20, OnFull::Deny);
    let (first, _) = kept(&mut table, "0123456789");
    let (_, second) = kept(&mut table, "0123456789");
    assert!(second);
    table.message(Some(first), &MessageOp::Forget, at(0)).unwrap();
    assert_eq!(table.freed_message(), Some(first.index));
    assert!(kept(&mut table, "0123456789").1, "room for one");
    assert!(!kept(&mut table, "0123456789").1, "and not for two");
}

#[test]
fn a_result_without_a_row_takes_no_bytes() {
    let mut table = MemoryTable::new(1, 10, OnFull::Deny);
    let held = table.message(None, &MessageOp::First { ttl: ms(100) }, at(0)).unwrap().1.unwrap();
    for _ in 0..5 {
        assert!(
            table.message(None, &done("t", "0123456789"), at(0)).is_err(),
            "no room for another id"
        );
    }
    table.message(Some(held), &MessageOp::Forget, at(0)).unwrap();
    table.freed_message();
    assert!(kept(&mut table, "0123456789").1);
}

#[test]
fn an_evicted_result_makes_room() {
    let mut table = MemoryTable::new(1, 10, OnFull::Deny);
    for round in 0..5 {
        let first = MessageOp::First { ttl: ms(1_000) };
        table.message(None, &first, at(round * 2_000)).unwrap();
        while table.freed_message().is_some() {}
        let now = at(round * 2_000 + 1_000);
        let slot = table.message(None, &done("t", "0123456789"), now).unwrap().1.unwrap();
        while table.freed_message().is_some() {}
        let look = table.message(Some(slot), &MessageOp::Look, now).unwrap().0;
        assert_eq!(
            look,
            MessageReply::Duplicate { result: Some("0123456789".into()) },
            "round {round}"
        );
    }
}
