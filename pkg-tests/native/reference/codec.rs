//! The text form of records: what is written can be read, and nothing else can.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, Tag};
use tidegate::op::{self, Op, Record, Write};
use tidegate::{
    Clock, Limit, LimitOptions, Limits, MAX_LIMITS, MAX_RECORD_CHARS, Millis, Timestamp,
};

use crate::generate::{sequence, spec};
use crate::{Core, Text, YEAR, checked_text, compare, options, support};

/// Text of the right alphabet in the right order, with every number possible.
fn almost() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        4 => (0..70_u64).prop_map(|n| n.to_string()),
        2 => any::<u64>().prop_map(|n| n.to_string()),
        2 => (0..1_u64 << 53).prop_map(|n| n.to_string()),
        1 => (-2..=2_i64).prop_map(|by| (1_u64 << 53).saturating_add_signed(by).to_string()),
        1 => (-2..=2_i64).prop_map(|by| (1_u64 << 51).saturating_add_signed(by).to_string()),
        1 => "0[0-9]{1,3}|[+-][0-9]|",
    ];
    let numbers = || vec(number.clone(), 1..8).prop_map(|numbers| numbers.join(","));
    let entry = ("[a-z~]{0,3}", prop_oneof![Just("b"), Just("f"), Just("s"), Just("x")], numbers())
        .prop_map(|(name, algorithm, numbers)| format!("{name}={algorithm},{numbers}"));
    let block = numbers().prop_map(|numbers| format!("b{numbers}"));
    let part = || prop_oneof![4 => entry.clone(), 1 => block.clone(), 2 => "[a-z\"{}]{0,4}", 2 => numbers()];
    let head = "1[lcdts]|[0-9a-z]{0,3}";
    (head, vec(part(), 0..10))
        .prop_map(|(head, parts)| parts.into_iter().fold(head, |text, part| text + "|" + &part))
}

/// Something that was written, with a few characters changed.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<Index>(), 0..4_u8, "[ -~]");
    (written(), vec(edit, 0..4)).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for (at, kind, with) in edits {
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = with.as_bytes()[0],
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.insert(at, with.as_bytes()[0]),
                _ => bytes.extend_from_within(at..),
            }
        }
        String::from_utf8(bytes).unwrap()
    })
}

fn written() -> impl Strategy<Value = String> {
    let limits = sequence(true).prop_map(|sequence| {
        let mut text = Text::new(Clock::Store);
        compare(&sequence, &mut text, Clock::Store, true);
        text.stored.map_or_else(|| "1l.".into(), |(text, _)| text)
    });
    let tag = || "[A-Za-z0-9_-]{1,64}";
    let message =
        (proptest::option::of(tag()), 0..1_u64 << 53, proptest::option::of(tag()), "[ -~]{0,40}")
            .prop_map(|(token, until, payload, result)| {
                let (by, payload) =
                    (token.clone().unwrap_or_default(), payload.unwrap_or_default());
                match token {
                    Some(token) if result.is_empty() => format!("1c|{token}|{until}|{payload}."),
                    _ => format!("1d|{by}|{until}|{payload}|{result}."),
                }
            });
    let burst = (
        any::<bool>(),
        1..=YEAR,
        0..1_u64 << 40,
        proptest::option::of(tag()),
        vec(0..1_u64 << 53, 1..=17),
    )
        .prop_map(|(sliding, window, bucket, nonce, mut counts)| {
            counts.truncate(if sliding { 17 } else { 1 });
            let counts: Vec<_> = counts.iter().map(u64::to_string).collect();
            format!(
                "1{}|{window},{bucket},{},{bucket}|{}|{}.",
                if sliding { 's' } else { 't' },
                bucket / 2,
                nonce.unwrap_or_default(),
                counts.join(",")
            )
        });
    prop_oneof![2 => limits, 1 => message, 1 => burst]
}

/// Reads any text; what can be read is what would be written, and every operation runs on it.
fn read(text: &str, now: u64) -> Result<(), TestCaseError> {
    let Ok(record) = op::decode(text) else {
        return Ok(());
    };
    prop_assert_eq!(op::encode(&record), Some(text.to_owned()));
    let now = Timestamp::from_ms(now);
    let limit = Limit::new(&LimitOptions {
        name: "a".into(),
        ..LimitOptions::new(7, Millis::from_ms(60_000))
    });
    let limits = Limits::new(vec![limit.unwrap()]).unwrap();
    let policy =
        BurstPolicy::new(3, Millis::from_ms(1_000), Millis::ZERO, Trigger::Sliding).unwrap();
    let token = Tag::new("token").unwrap();
    let span = Millis::from_ms(30_000);
    let ops = [
        Op::Consume { limits: &limits, cost: 1 },
        Op::Consume { limits: &limits, cost: u64::MAX },
        Op::Peek { limits: &limits, cost: 1 },
        Op::Refund { limits: &limits, cost: u64::MAX },
        Op::Block { duration: span },
        Op::Unblock,
        Op::Reset { limits: &limits },
        Op::Observe { policy: &policy, weight: u64::MAX, nonce: Some(&token) },
        Op::Message(&MessageOp::First { ttl: span }),
        Op::Message(&MessageOp::Look),
        Op::Message(&MessageOp::Claim { token: token.clone(), lease: span, payload: None }),
        Op::Message(&MessageOp::Forget),
    ];
    for (op, clock) in ops.iter().flat_map(|op| [(op, Clock::Store), (op, Clock::Caller)]) {
        if let Ok((_, Write::Put(next, ttl))) = op::step(Some(record.clone()), op, now, clock) {
            prop_assert!(ttl > Millis::ZERO);
            // A record of eight limits has no room for a ninth, and says so.
            if let Some(text) = op::encode(&next) {
                prop_assert_eq!(op::decode(&text), Ok(next));
            }
        }
    }
    Ok(())
}

fn now() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_000_u64, 0..1_u64 << 45]
}

#[test]
fn any_text_is_read_or_refused() {
    proptest!(support::config(20_000, 10), |(text in any::<String>(), now in now())| read(&text, now)?);
}

#[test]
fn text_that_is_almost_a_record_is_read_or_refused() {
    proptest!(support::config(20_000, 10), |(text in almost(), now in now())| read(&text, now)?);
}

#[test]
fn a_record_with_a_few_characters_changed_is_read_or_refused() {
    proptest!(support::config(6_000, 30), |(text in mutated(), now in now())| read(&text, now)?);
}

#[test]
fn what_was_never_written_is_not_read() {
    for text in [
        "",
        "1l",
        "1l|a=f,1,1,1,17000",
        "1.",
        "1l|.",
        "2l.",
        "1l|a=b,1,1,1,4503599627370497,0.",
        "1l|a=b,2,2,1,0,0.",
        "1l|a1.",
        "1l|a1,2.",
        "1l|a1,2,3|a1,2,3.",
        "1l|a1,2,3|b1,1.",
        "1l|a=f,1,1,1,1|a1,2,3.",
        "1l|b1,1|b1,1.",
        "1l|a=s,1,10,0,1,5.",
        "1l|a=f,1,1,01,0.",
        "1l|a=f,1,1,1,9007199254740992.",
        "1c|t|1.",
        "1c||1|.",
        "1d|t|1|.",
        "1d|t|1|p|\u{e9}.",
        "1t|0,1,1,1||1.",
        "1t|1,1,1,1||1,1.",
        "1t|1,1,1,1||.",
        "1s|1,1,1,1||1|.",
    ] {
        assert!(op::decode(text).is_err(), "{text:?}");
    }
    let many: String = ('a'..='z').map(|name| format!("|{name}=f,1,1,1,1")).collect();
    assert!(op::decode(&format!("1l{many}.")).is_err(), "more limits than a record holds");
    let long: String = ('a'..='h')
        .map(|name| format!("|{name}=f,{0},{1},{0},{0}", u64::pow(10, 15), YEAR))
        .collect();
    assert!(
        long.len() > MAX_RECORD_CHARS && op::decode(&format!("1l{long}.")).is_err(),
        "more characters"
    );
}

/// Limits that are accepted together fit a record at their fullest, blocked as long as can be.
#[test]
fn accepted_limits_always_fit_their_record() {
    let name = proptest::string::string_regex("[a-zA-Z0-9_.-]{1,24}|.{1,40}").unwrap();
    let limiter = vec((spec("x"), name, any::<bool>()), 1..=MAX_LIMITS);
    proptest!(support::config(12_000, 8), |(limiter in limiter)| {
        let limit = |(spec, name, long): &(_, String, bool)| {
            let name = if *long { format!("{name:x<24.24}") } else { name.clone() };
            Limit::new(&LimitOptions { name, ..options(spec) }).unwrap()
        };
        full_record(limiter.iter().map(limit).collect());
    });
}

/// Fills the limits' record as far as it goes, and writes and reads it.
fn full_record(limits: Vec<Limit>) {
    let Ok(limits) = Limits::new(limits) else {
        return;
    };
    let late = (1 << 53) - 1 - 3 * YEAR;
    let mut text = Text::new(Clock::Store);
    // One limit after the other, so that each is full.
    for limit in &limits {
        let own = Limits::new(vec![limit.clone()]).unwrap();
        text.run(&Op::Consume { limits: &own, cost: limit.capacity() }, late);
    }
    text.run(&Op::Block { duration: Millis::MAX_OPTION }, late);
    assert!(text.stored.is_some_and(|(text, _)| text.len() <= MAX_RECORD_CHARS));
}

#[test]
fn limits_whose_record_would_just_not_fit_are_refused() {
    // Every length of names around the bound: eight limits of which each needs about 64 characters.
    for extra in 0..=8 * 24 {
        let name = |index: usize| {
            format!("{index}{}", "n".repeat((extra / 8 + usize::from(extra % 8 > index)).min(23)))
        };
        let limit = |index| {
            let options = LimitOptions {
                name: name(index),
                ..LimitOptions::new(9_999_991, Millis::from_ms(86_399_999))
            };
            Limit::new(&options).unwrap()
        };
        full_record((0..MAX_LIMITS).map(limit).collect());
    }
}

#[test]
fn the_longest_records_fit() {
    let longest = Tag::new(&"t".repeat(64)).unwrap();
    let huge = (1_u64 << 53) - 1;
    let burst = tidegate::burst::Burst {
        window: Millis::MAX_OPTION,
        trigger: Trigger::Sliding,
        bucket: huge,
        counts: vec![huge; 17],
        fired: Some(huge - 1),
        quiet_until: Timestamp::from_ms(huge),
        nonce: Some(longest.clone()),
    };
    checked_text(&Record::Burst(burst));
    let claimed = tidegate::dedup::Message::Claimed {
        token: longest.clone(),
        lease_until: Timestamp::from_ms(huge),
        payload: Some(longest),
    };
    checked_text(&Record::Message(claimed));
}
