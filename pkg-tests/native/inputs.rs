//! What users write, as anything at all: keys, durations, addresses and limits are read or refused, and never more
//! than that. (The text of records and sequences of operations are in reference.rs.)
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::{Algorithm, Key, Kind, Limit, LimitOptions, Limits, Millis, ip_key};

const YEAR_MS: u64 = 365 * 86_400_000;

/// UTF-16 with more than its share of lone surrogates and of what has a meaning in keys.
fn units() -> impl Strategy<Value = Vec<u16>> {
    let special: Vec<u16> = ":/%{}#lmb\0\n*?[ ".encode_utf16().collect();
    let unit = prop_oneof![
        4 => any::<u16>(),
        3 => prop::sample::select(special),
        2 => 0xd800_u16..0xe000,
        2 => 0x61_u16..0x64,
    ];
    prop_oneof![8 => vec(unit.clone(), 0..6), 1 => vec(unit, 60..260)]
}

#[test]
fn different_keys_never_meet_and_are_short_printable_text() {
    let tuple = || (prop::option::of(units()), units(), units());
    proptest!(support::config(3_000, 1), |(a in tuple(), b in tuple())| {
        let key = |(store, prefix, own): &(Option<Vec<u16>>, Vec<u16>, Vec<u16>)| {
            Key::from_utf16(store.as_deref(), prefix, Kind::Limit, own)
        };
        prop_assert_eq!(key(&a) == key(&b), a == b);
        let text = key(&a);
        prop_assert!(text.as_str().len() <= 620);
        prop_assert!(text.as_str().bytes().all(|b| (0x20..0x7f).contains(&b)));
        let braces = text.as_str().contains(['{', '}']);
        prop_assert!(!braces);
    });
}

#[test]
fn a_duration_is_whole_milliseconds_within_a_year_or_nothing() {
    let text = prop_oneof![any::<String>(), "[0-9]{0,20}(\\.[0-9]{0,20})? ?(ms|s|m|h|d|w|)"];
    proptest!(support::config(3_000, 1), |(text in text)| {
        if let Some(span) = Millis::parse(&text) {
            prop_assert!((1..=YEAR_MS).contains(&span.as_ms()));
        }
    });
    proptest!(support::config(3_000, 1), |(ms in 1..=YEAR_MS)| {
        prop_assert_eq!(Millis::parse(&format!("{ms}ms")), Some(Millis::from_ms(ms)));
        let seconds = format!("{}.{:03} s", ms / 1_000, ms % 1_000);
        prop_assert_eq!(Millis::parse(&seconds), Some(Millis::from_ms(ms)));
    });
}

#[test]
fn an_address_has_one_key_whatever_its_notation() {
    proptest!(support::config(3_000, 1), |(junk in any::<String>(), bits in any::<u32>())| {
        let _ = ip_key(&junk, bits);
    });
    proptest!(support::config(3_000, 1), |(address in any::<u128>(), bits in 1_u32..=128)| {
        let v6 = std::net::Ipv6Addr::from_bits(address);
        let full: Vec<_> = v6.segments().iter().map(|part| format!("{part:04X}")).collect();
        let key = ip_key(&v6.to_string(), bits);
        prop_assert!(key.is_some());
        prop_assert_eq!(&key, &ip_key(&full.join(":"), bits));
        prop_assert_eq!(&key, &ip_key(&format!("[{v6}]:443"), bits));
        prop_assert_eq!(&key, &ip_key(&format!("{v6}%eth0"), bits));
        let mapped = std::net::Ipv4Addr::from_bits((address & 0xffff_ffff) as u32);
        prop_assert_eq!(ip_key(&format!("::ffff:{mapped}"), bits), Some(mapped.to_string()));
    });
}

#[test]
fn limits_are_built_right_or_refused_by_name() {
    let algorithm = prop_oneof![
        Just(Algorithm::LeakyBucket),
        Just(Algorithm::FixedWindow),
        Just(Algorithm::SlidingWindow)
    ];
    let number = || prop_oneof![any::<u64>(), 0_u64..20, (1_u64 << 50)..(1 << 54)];
    let window = prop_oneof![any::<u64>(), 0_u64..100_000, Just(YEAR_MS), Just(YEAR_MS + 1)];
    let limit =
        (any::<String>(), algorithm, number(), window, prop::option::of(number()), any::<bool>());
    proptest!(support::config(4_000, 4), |(given in vec(limit, 0..10))| {
        let mut built = Vec::new();
        for (name, algorithm, limit, window, burst, strict) in given {
            let window = Millis::from_ms(window);
            let options = LimitOptions { name, algorithm, burst, strict, ..LimitOptions::new(limit, window) };
            match Limit::new(&options) {
                Ok(valid) => {
                    prop_assert!(valid.capacity() >= 1 && valid.capacity() < 1 << 53);
                    built.push(valid);
                }
                Err(error) => {
                    let names = ["name", "limit", "window", "burst", "strict"];
                    prop_assert!(names.contains(&error.option) && !error.expected.is_empty());
                }
            }
        }
        let count = built.len();
        if let Ok(limits) = Limits::new(built) {
            prop_assert!((1..=8).contains(&count) && limits.iter().count() == count);
        }
    });
}
