//! A shard over its wire against the steps themselves: random batches, every reply and every row equal; and what
//! is not a batch is refused before anything is written.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::MessageOp;
use tidegate::op::{self, Op, OwnedOp, Reply, Write};
use tidegate::redis::{decode, encode};
use tidegate::shard::{self, BatchError, Rows, Tally};
use tidegate::{
    Algorithm, Clock, Delta, Error, Limit, LimitOptions, Limits, Millis, Timestamp, wire,
};

#[derive(Default)]
struct Table {
    rows: RefCell<HashMap<String, (String, u64)>>,
    room: Cell<usize>,
}

impl Rows for Table {
    type Error = &'static str;

    fn get(&self, key: &str) -> Result<Option<String>, Self::Error> {
        if key == "broken" {
            return Err("no disk");
        }
        Ok(self.rows.borrow().get(key).map(|(record, _)| record.clone()))
    }

    fn put(
        &self,
        key: &str,
        record: &str,
        over: Timestamp,
        new: bool,
    ) -> Result<bool, Self::Error> {
        let mut rows = self.rows.borrow_mut();
        assert_eq!(new, !rows.contains_key(key), "a row is new when there is none");
        if new && rows.len() >= self.room.get() {
            return Ok(false);
        }
        rows.insert(key.into(), (record.into(), over.as_ms()));
        Ok(true)
    }

    fn delete(&self, key: &str) -> Result<(), Self::Error> {
        assert!(self.rows.borrow_mut().remove(key).is_some(), "there is something to delete");
        Ok(())
    }
}

const START: Timestamp = Timestamp::from_ms(1_790_000_000_000);

fn table() -> Table {
    Table { room: Cell::new(usize::MAX), ..Table::default() }
}

fn limits() -> impl Strategy<Value = Limits> {
    let algorithm = prop_oneof![
        Just(Algorithm::LeakyBucket),
        Just(Algorithm::FixedWindow),
        Just(Algorithm::SlidingWindow)
    ];
    let window = prop_oneof![1_u64..60, Just(1_000), Just(31_536_000_000)];
    let limit = (algorithm, prop_oneof![1_u64..12, Just(60_000)], window, any::<bool>());
    vec(limit, 1..4).prop_map(|given| {
        let limit = |(index, (algorithm, limit, window, strict)): (usize, _)| {
            let options = LimitOptions {
                name: ["default", "a", "a name that is hashed, as it is long"][index].into(),
                algorithm,
                strict: strict && algorithm == Algorithm::LeakyBucket,
                ..LimitOptions::new(limit, Millis::from_ms(window))
            };
            Limit::new(&options).unwrap()
        };
        Limits::new(given.into_iter().enumerate().map(limit).collect()).unwrap()
    })
}

fn span() -> impl Strategy<Value = Millis> {
    (1_u64..500).prop_map(Millis::from_ms)
}

fn message() -> impl Strategy<Value = MessageOp> {
    support::message("[ -~]{1,40}".prop_map(String::into_boxed_str))
}

fn observe() -> impl Strategy<Value = OwnedOp> {
    let trigger = prop_oneof![Just(Trigger::Tumbling), Just(Trigger::Sliding)];
    let cooldown = prop_oneof![Just(Millis::ZERO), span()];
    (1_u64..6, span(), cooldown, trigger, 1_u64..4, prop::option::of(support::tag())).prop_map(
        |(threshold, window, cooldown, trigger, weight, nonce)| {
            let policy = BurstPolicy::new(threshold, window, cooldown, trigger).unwrap();
            OwnedOp::Observe(policy, weight, nonce)
        },
    )
}

/// Of a few tiers, and of windows that these tests pass through.
fn delta() -> impl Strategy<Value = Delta> {
    (0_u64..5, 0_u64..6, 1_u64..9, 0_u64..600).prop_map(|(node, seq, units, passed)| Delta {
        node,
        seq,
        units,
        span: START.plus(Millis::from_ms(passed)),
    })
}

fn tier() -> impl Strategy<Value = OwnedOp> {
    let one = || {
        limits().prop_map(|limits| Limits::new(limits.iter().take(1).cloned().collect()).unwrap())
    };
    prop_oneof![
        (one(), 0_u64..4, 0_u64..200)
            .prop_map(|(limits, cost, units)| OwnedOp::Reserve(limits, cost, units)),
        (one(), prop::option::of(delta()), 0_u64..4)
            .prop_map(|(limits, delta, cost)| OwnedOp::Add(limits, delta, cost)),
        (one(), delta()).prop_map(|(limits, delta)| OwnedOp::GiveBack(limits, delta)),
    ]
}

/// Operations of every kind.
fn operation() -> impl Strategy<Value = OwnedOp> {
    let cost = || prop_oneof![8 => 1_u64..5, 1 => 1_u64..(1 << 53)];
    prop_oneof![
        8 => (limits(), cost()).prop_map(|(limits, cost)| OwnedOp::Consume(limits, cost)),
        2 => (limits(), cost()).prop_map(|(limits, cost)| OwnedOp::Peek(limits, cost)),
        2 => (limits(), cost()).prop_map(|(limits, cost)| OwnedOp::Refund(limits, cost)),
        1 => span().prop_map(OwnedOp::Block),
        1 => Just(OwnedOp::Unblock),
        1 => limits().prop_map(OwnedOp::Reset),
        4 => tier(),
        6 => message().prop_map(OwnedOp::Message),
        4 => observe(),
    ]
}

fn key(number: u8, op: &OwnedOp) -> String {
    let kind = match op {
        OwnedOp::Message(_) => 'm',
        OwnedOp::Observe(..) => 'b',
        _ => 'l',
    };
    format!("tg:{kind}:key {number}")
}

fn words(op: &OwnedOp) -> String {
    encode(&op.as_op())
}

/// What the steps answer, on rows of their own.
fn expected(table: &Table, key: &str, op: &Op<'_>, now: Timestamp) -> Reply {
    let mut rows = table.rows.borrow_mut();
    let record = rows.get(key).map(|(text, _)| op::decode(text).unwrap());
    let (reply, write) = op::step(record, op, now, Clock::Store).unwrap();
    match write {
        Write::Keep => {}
        Write::Delete => drop(rows.remove(key)),
        Write::Put(record, ttl) => {
            rows.insert(key.into(), (op::encode(&record).unwrap(), now.plus(ttl).as_ms()));
        }
    }
    reply
}

proptest! {
    #![proptest_config(support::config(20_000, 40))]

    #[test]
    fn a_shard_answers_what_the_steps_answer(
        batches in vec((0_u64..300, vec((0_u8..3, operation()), 1..20)), 1..10),
    ) {
        let (rows, model) = (table(), table());
        let mut now = START;
        for (passed, batch) in batches {
            now = now.plus(Millis::from_ms(passed));
            let calls: Vec<(String, String)> =
                batch.iter().map(|(number, op)| (key(*number, op), words(op))).collect();
            let text = shard::batch(64, calls.iter().map(|(key, op)| (key.as_str(), op.as_str())));
            let reply = shard::run(&rows, Some(64), &text, now, &mut Tally::default()).unwrap();
            let reply: Vec<String> = reply.split('\n').map(Into::into).collect();
            let ops: Vec<_> = batch.iter().map(|(_, op)| op.as_op()).collect();
            let answers = decode(&ops, &reply).unwrap();
            for (((key, _), op), answer) in calls.iter().zip(&ops).zip(answers) {
                prop_assert_eq!(answer, Ok(expected(&model, key, op, now)));
            }
            prop_assert_eq!(&*rows.rows.borrow(), &*model.rows.borrow());
        }
    }

    #[test]
    fn words_are_read_as_they_were_written_and_nothing_else_is(
        op in operation(), at in any::<prop::sample::Index>(), byte in "[ -~]",
    ) {
        let text = words(&op);
        prop_assert_eq!(words(&wire::read(&text).unwrap()), text.as_str());
        // Whatever one character makes of it either means something, and is then written just so, or is refused.
        let mut broken = text.clone();
        let at = at.index(text.len());
        broken.replace_range(at..=at, &byte);
        if let Some(other) = wire::read(&broken) {
            prop_assert_eq!(words(&other), broken);
        }
    }
}

#[test]
fn what_is_no_batch_is_refused_and_writes_nothing() {
    let rows = table();
    let run = |text: &str| {
        shard::run(&rows, Some(64), text, Timestamp::from_ms(1), &mut Tally::default()).map(drop)
    };
    let good = "a\tF;100";
    for text in
        ["", "1;64", "1;64\n", "2;64\na\tF;100", "1;64\na F;100", "1;64\na\tZ;1", "1;64\n\n"]
    {
        assert_eq!(run(text), Err(BatchError::Unreadable), "{text:?}");
    }
    for end in ["b\tF;0", "b\tF;01", "b\tF", "b\tC;1;", "b\tC;0;default=b,1,1,1", "", "b\tF;100;"] {
        assert_eq!(run(&format!("1;64\n{good}\n{end}")), Err(BatchError::Unreadable), "{end}");
    }
    assert_eq!(run(&format!("1;32\n{good}")), Err(BatchError::Shards));
    assert_eq!(run(&format!("1;64\n{good}\nbroken\tF;1")), Err(BatchError::Rows("no disk")));
    // The host undoes what stood before the row that failed; here it stays.
    assert_eq!(rows.rows.borrow().len(), 1);
}

#[test]
fn a_row_that_is_not_ours_and_a_full_table_refuse_alone() {
    let rows = table();
    rows.rows.borrow_mut().insert("odd".into(), ("hello".into(), 5));
    rows.rows.borrow_mut().insert("l".into(), ("1l.".into(), 5));
    rows.room.set(3);
    let ops = [OwnedOp::Message(MessageOp::First { ttl: Millis::from_ms(9) })];
    let words = words(&ops[0]);
    let keys = ["odd", "a", "b", "l", "a"];
    let text = shard::batch(64, keys.iter().map(|key| (*key, words.as_str())));
    let mut tally = Tally::default();
    let reply = shard::run(&rows, Some(64), &text, Timestamp::from_ms(1), &mut tally).unwrap();
    let ops = vec![ops[0].as_op(); keys.len()];
    let answers = decode(&ops, &reply.split('\n').map(Into::into).collect::<Vec<_>>()).unwrap();
    let refused: Vec<_> = answers.iter().map(|answer| answer.as_ref().err()).collect();
    assert!(matches!(refused[0], Some(Error::Corrupt)));
    assert!(matches!(refused[3], Some(Error::Corrupt)));
    assert_eq!(refused[2], Some(&Error::Store("the shard is full".into())));
    assert_eq!((refused[1], refused[4]), (None, None));
    assert_eq!(tally.errors, 3);
}

#[test]
fn keys_are_spread_evenly() {
    let mut counts = [0; 64];
    for number in 0..64_000 {
        counts[shard::of(&format!("tg:l:user:{number}"), 64) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
}
