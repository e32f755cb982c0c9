//! The shared decision vectors, computed in exact rational arithmetic by a program that shares no code
//! with this one: every field of every decision, through the memory store and through the text codec.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::cell::Cell;

use serde::Deserialize;
use tidegate::op::{self, Op, Record, Reply, Write};
use tidegate::{
    Algorithm, Call, Clock, Decision, Key, Kind, Limit, LimitOptions, Limits, MemoryStore, Millis,
    OnFull, Reason, Timestamp,
};

#[derive(Deserialize)]
struct Vectors {
    sequences: Vec<Sequence>,
}

#[derive(Deserialize)]
struct Sequence {
    limits: Vec<LimitCase>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct LimitCase {
    name: String,
    algorithm: String,
    limit: u64,
    window: u64,
    burst: Option<u64>,
    #[serde(default)]
    strict: bool,
}

#[derive(Deserialize)]
struct Step {
    at: u64,
    op: String,
    cost: u64,
    expect: Expected,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Expected {
    allowed: bool,
    reason: String,
    limit: u64,
    remaining: u64,
    retry_after_ms: Option<u64>,
    reset_after_ms: u64,
    limit_name: String,
}

fn vectors() -> Vec<Sequence> {
    let text = include_str!("../vectors/decisions.json");
    serde_json::from_str::<Vectors>(text).expect("the vectors parse").sequences
}

fn limits(cases: &[LimitCase]) -> Limits {
    let limit = |case: &LimitCase| {
        let algorithm = Algorithm::named(&case.algorithm).expect("a known algorithm");
        let options = LimitOptions {
            name: case.name.clone(),
            algorithm,
            burst: case.burst,
            strict: case.strict,
            ..LimitOptions::new(case.limit, Millis::from_ms(case.window))
        };
        Limit::new(&options).expect("a valid limit")
    };
    Limits::new(cases.iter().map(limit).collect()).expect("valid limits")
}

fn told(decision: &Decision, cases: &[LimitCase]) -> Expected {
    let reason = match decision.reason {
        Reason::Ok => "ok",
        Reason::Limited => "limited",
        Reason::Never => "never",
        Reason::Blocked => "blocked",
    };
    Expected {
        allowed: decision.allowed(),
        reason: reason.into(),
        limit: decision.limit,
        remaining: decision.remaining,
        retry_after_ms: decision.retry_after.map(Millis::as_ms),
        reset_after_ms: decision.reset_after.as_ms(),
        limit_name: cases[decision.decided_by].name.clone(),
    }
}

fn op<'a>(step: &Step, limits: &'a Limits) -> Op<'a> {
    match step.op.as_str() {
        "peek" => Op::Peek { limits, cost: step.cost },
        "consume" => Op::Consume { limits, cost: step.cost },
        other => panic!("unknown operation {other}"),
    }
}

/// Runs every sequence with `decide`, which is made anew for each.
fn run(mut start: impl FnMut() -> Box<dyn FnMut(&Op<'_>, Timestamp) -> Reply>) {
    let sequences = vectors();
    assert!(sequences.len() >= 60);
    for (number, sequence) in sequences.iter().enumerate() {
        let limits = limits(&sequence.limits);
        let mut decide = start();
        for (at, step) in sequence.steps.iter().enumerate() {
            let reply = decide(&op(step, &limits), Timestamp::from_ms(step.at));
            let Reply::Decision(decision) = reply else { panic!("not a decision") };
            assert_eq!(
                told(&decision, &sequence.limits),
                step.expect,
                "sequence {number}, step {at}"
            );
        }
    }
}

#[test]
fn the_memory_store_decides_as_the_vectors_say() {
    run(|| {
        let now = std::rc::Rc::new(Cell::new(Timestamp::from_ms(0)));
        let clock = now.clone();
        let store = MemoryStore::new(100, OnFull::Deny, move || clock.get());
        let key = Key::new("tg", Kind::Limit, "key");
        Box::new(move |op, at| {
            now.set(at);
            store.call(&Call { key: &key, op: op.clone() }).expect("memory answers")
        })
    });
}

#[test]
fn steps_on_stored_text_decide_the_same_and_expiry_at_any_allowed_moment_changes_nothing() {
    for expire in [false, true] {
        run(|| {
            let mut stored: Option<(String, Timestamp)> = None;
            Box::new(move |op, now| {
                // A store may drop a record as soon as its time to live is over, or keep it for ever.
                let text =
                    stored.as_ref().filter(|(_, end)| !expire || now < *end).map(|(text, _)| text);
                let record = text.map(|text| op::decode(text).expect("our own text"));
                let (reply, write) = op::step(record, op, now, Clock::Store).expect("a step");
                match write {
                    Write::Keep => {}
                    Write::Delete => stored = None,
                    Write::Put(record, ttl) => stored = Some((text_of(&record), now.plus(ttl))),
                }
                reply
            })
        });
    }
}

fn text_of(record: &Record) -> String {
    let text = op::encode(record).expect("few enough limits");
    assert!(text.len() <= 512 && text.bytes().all(|b| (0x20..0x7f).contains(&b)), "{text}");
    text
}
