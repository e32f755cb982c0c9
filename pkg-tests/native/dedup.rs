//! Message ids against a model: one winner, nothing lost, and the lease's end decides by value, so that a
//! store may drop a record from then on, or keep it.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::dedup::{Message, MessageOp, MessageReply, Tag, step};
use tidegate::op::{self, Op, Reply, Write};
use tidegate::{Call, Clock, Key, Kind, MemoryStore, Millis, OnFull, Timestamp};

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn ms(ms: u64) -> Millis {
    Millis::from_ms(ms)
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn claim(token: &str, lease: u64) -> MessageOp {
    MessageOp::Claim { token: tag(token), lease: ms(lease), payload: None }
}

fn commit(token: &str, ttl: u64, result: &str) -> MessageOp {
    MessageOp::Commit {
        token: tag(token),
        ttl: ms(ttl),
        result: Some(result.into()),
        payload: None,
    }
}

fn renew(token: &str, lease: u64) -> MessageOp {
    MessageOp::Renew { token: tag(token), lease: ms(lease), payload: None }
}

fn release(token: &str) -> MessageOp {
    MessageOp::Release { token: tag(token) }
}

const YES: MessageReply = MessageReply::Flag(true);
const NO: MessageReply = MessageReply::Flag(false);

fn duplicate(result: &str) -> MessageReply {
    MessageReply::Duplicate { result: Some(result.into()) }
}

/// One id, written out.
#[derive(Default)]
struct Id(Option<Message>);

impl Id {
    fn run(&mut self, op: &MessageOp, now: u64) -> MessageReply {
        step(&mut self.0, op, at(now)).0
    }
}

#[test]
fn first_is_true_once_and_again_when_forgotten_or_over() {
    let mut id = Id::default();
    let first = MessageOp::First { ttl: ms(100) };
    assert_eq!(id.run(&first, 1_000), YES);
    assert_eq!(id.run(&first, 1_000), NO);
    assert_eq!(id.run(&first, 1_099), NO);
    assert_eq!(id.run(&claim("a", 10), 1_099), MessageReply::Duplicate { result: None });
    assert_eq!(id.run(&first, 1_100), YES);
    assert_eq!(id.run(&MessageOp::Forget, 1_101), YES);
    assert_eq!(id.run(&first, 1_101), YES);
}

#[test]
fn first_is_false_while_claimed_and_ends_a_claim_whose_lease_ran_out() {
    let mut id = Id::default();
    assert_eq!(id.run(&claim("a", 10), 0), MessageReply::Fresh);
    assert_eq!(id.run(&MessageOp::First { ttl: ms(100) }, 9), NO);
    assert_eq!(id.run(&MessageOp::First { ttl: ms(100) }, 10), YES);
    assert_eq!(id.run(&commit("a", 100, "1"), 11), NO);
}

#[test]
fn a_duplicate_gets_the_stored_result_and_one_in_progress_the_wait() {
    let mut id = Id::default();
    assert_eq!(id.run(&MessageOp::Look, 0), MessageReply::Absent);
    assert_eq!(id.run(&claim("a", 30), 0), MessageReply::Fresh);
    assert_eq!(id.run(&claim("b", 30), 10), MessageReply::InProgress { retry_after: ms(20) });
    assert_eq!(id.run(&MessageOp::Look, 10), MessageReply::InProgress { retry_after: ms(20) });
    assert_eq!(id.run(&commit("a", 100, "{\"n\":1}"), 20), YES);
    for op in [claim("b", 30), claim("a", 30), MessageOp::Look] {
        assert_eq!(id.run(&op, 119), duplicate("{\"n\":1}"));
    }
    assert_eq!(id.run(&claim("b", 30), 120), MessageReply::Fresh);
}

#[test]
fn a_retry_after_a_lost_reply_is_told_what_it_was_told() {
    let mut id = Id::default();
    assert_eq!(id.run(&claim("a", 30), 0), MessageReply::Fresh);
    assert_eq!(id.run(&claim("a", 30), 5), MessageReply::Fresh, "the same attempt");
    assert_eq!(id.run(&commit("a", 100, "1"), 6), YES);
    assert_eq!(id.run(&commit("a", 100, "1"), 50), YES, "the same commit");
    assert_eq!(id.run(&claim("b", 30), 105), duplicate("1"));
    assert_eq!(id.run(&claim("b", 30), 106), MessageReply::Fresh, "counted from the first commit");

    assert_eq!(id.run(&release("b"), 107), YES);
    assert_eq!(id.run(&release("b"), 108), YES, "the same release");
    assert_eq!(id.run(&claim("c", 30), 109), MessageReply::Fresh);
    assert_eq!(id.run(&release("b"), 110), NO, "it is somebody else's now");
    assert_eq!(id.run(&commit("b", 100, "2"), 110), NO);
    assert_eq!(id.run(&commit("c", 100, "3"), 111), YES);
}

#[test]
fn a_lease_that_ran_out_commits_unless_another_took_it() {
    let mut id = Id::default();
    id.run(&claim("a", 30), 0);
    assert_eq!(id.run(&commit("a", 100, "late"), 1_000), YES, "nobody took it");

    let mut id = Id::default();
    id.run(&claim("a", 30), 0);
    assert_eq!(id.run(&claim("b", 30), 30), MessageReply::Fresh, "over at its end, not after");
    assert_eq!(id.run(&commit("a", 100, "stale"), 31), NO);
    assert_eq!(id.run(&renew("a", 100), 31), NO);
    assert_eq!(id.run(&release("a"), 31), NO);
    assert_eq!(id.run(&commit("b", 100, "mine"), 32), YES);
    assert_eq!(id.run(&commit("a", 100, "stale"), 33), NO);
    assert_eq!(id.run(&renew("a", 100), 33), NO);
    assert_eq!(id.run(&renew("b", 100), 33), NO, "done is done");
    assert_eq!(id.run(&release("b"), 33), NO, "done is done");
    assert_eq!(id.run(&MessageOp::Look, 34), duplicate("mine"));
}

#[test]
fn a_renewed_lease_lasts_from_the_renewal() {
    let mut id = Id::default();
    id.run(&claim("a", 30), 0);
    assert_eq!(id.run(&renew("a", 30), 20), YES);
    assert_eq!(id.run(&claim("b", 30), 49), MessageReply::InProgress { retry_after: ms(1) });
    assert_eq!(id.run(&renew("a", 30), 60), YES, "late, but nobody took it");
    assert_eq!(id.run(&claim("b", 30), 89), MessageReply::InProgress { retry_after: ms(1) });
}

#[test]
fn another_payload_is_a_mismatch_where_both_gave_one() {
    let with = |token: &str, payload: Option<&[u8]>| MessageOp::Claim {
        token: tag(token),
        lease: ms(30),
        payload: payload.map(Tag::hash),
    };
    let mut id = Id::default();
    assert_eq!(id.run(&with("a", Some(b"x")), 0), MessageReply::Fresh);
    assert_eq!(id.run(&with("b", Some(b"y")), 1), MessageReply::Mismatch);
    assert_eq!(id.run(&with("a", Some(b"y")), 1), MessageReply::Mismatch);
    assert!(matches!(id.run(&with("b", Some(b"x")), 1), MessageReply::InProgress { .. }));
    assert!(matches!(id.run(&with("b", None), 1), MessageReply::InProgress { .. }));
    let done = MessageOp::Commit {
        token: tag("a"),
        ttl: ms(100),
        result: None,
        payload: Some(Tag::hash(b"x")),
    };
    assert_eq!(id.run(&done, 2), YES);
    assert_eq!(id.run(&with("b", Some(b"y")), 3), MessageReply::Mismatch);
    assert_eq!(id.run(&with("b", Some(b"x")), 3), MessageReply::Duplicate { result: None });
    assert_eq!(id.run(&with("b", Some(b"y")), 102), MessageReply::Fresh, "forgotten with the rest");
}

// ---- the model

/// What is known of an id. What is over is not known, whatever a store still holds.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    Nothing,
    Claimed {
        by: Tag,
        until: u64,
        payload: Option<Tag>,
    },
    Done {
        by: Option<Tag>,
        until: u64,
        payload: Option<Tag>,
        result: Option<Box<str>>,
    },
    /// Its lease is over and nobody took it: free for all, its holder included.
    Free,
}

impl Known {
    fn at(&self, now: u64) -> Self {
        match self {
            Self::Claimed { until, .. } | Self::Done { until, .. } if now >= *until => Self::Free,
            other => other.clone(),
        }
    }

    /// What it answers, and what is known afterwards.
    fn run(&self, op: &MessageOp, now: u64) -> (MessageReply, Self) {
        let known = self.at(now);
        let nobodys = matches!(known, Self::Nothing | Self::Free);
        let holds =
            |token: &Tag| nobodys || matches!(&known, Self::Claimed { by, .. } if by == token);
        let mismatch = |given: &Option<Tag>| match &known {
            Self::Claimed { payload: Some(payload), .. }
            | Self::Done { payload: Some(payload), .. } => {
                given.as_ref().is_some_and(|given| given != payload)
            }
            _ => false,
        };
        let found = || match &known {
            Self::Claimed { until, .. } => {
                MessageReply::InProgress { retry_after: ms(until - now) }
            }
            Self::Done { result, .. } => MessageReply::Duplicate { result: result.clone() },
            Self::Nothing | Self::Free => MessageReply::Absent,
        };
        let claimed = |by: &Tag, lease: &Millis, payload: &Option<Tag>| Self::Claimed {
            by: by.clone(),
            until: now + lease.as_ms(),
            payload: payload.clone(),
        };
        match op {
            MessageOp::First { ttl } if nobodys => {
                let until = now + ttl.as_ms();
                (YES, Self::Done { by: None, until, payload: None, result: None })
            }
            MessageOp::Put { ttl } => {
                let until = now + ttl.as_ms();
                (YES, Self::Done { by: None, until, payload: None, result: None })
            }
            MessageOp::Look => (found(), known),
            MessageOp::Claim { payload, .. } if mismatch(payload) => {
                (MessageReply::Mismatch, known)
            }
            MessageOp::Claim { token, lease, payload } if holds(token) => {
                (MessageReply::Fresh, claimed(token, lease, payload))
            }
            MessageOp::Claim { .. } => (found(), known),
            MessageOp::Renew { token, lease, payload } if holds(token) => {
                (YES, claimed(token, lease, payload))
            }
            MessageOp::Commit { token, ttl, result, payload } if holds(token) => {
                let (by, payload, result) = (Some(token.clone()), payload.clone(), result.clone());
                (YES, Self::Done { by, until: now + ttl.as_ms(), payload, result })
            }
            MessageOp::Commit { token, .. } if matches!(&known, Self::Done { by: Some(by), .. } if by == token) => {
                (YES, known)
            }
            MessageOp::Release { token } if holds(token) => (YES, Self::Nothing),
            MessageOp::Forget => (MessageReply::Flag(!nobodys), Self::Nothing),
            _ => (NO, known),
        }
    }
}

fn operation() -> impl Strategy<Value = MessageOp> {
    let token = || prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(tag);
    let span = || prop_oneof![1..4_u64, 1..40_u64].prop_map(ms);
    let payload =
        || prop_oneof![2 => Just(None), 1 => Just(Some(tag("x"))), 1 => Just(Some(tag("y")))];
    let result = proptest::option::of("[ -~]{1,20}".prop_map(String::into_boxed_str));
    prop_oneof![
        2 => span().prop_map(|ttl| MessageOp::First { ttl }),
        1 => span().prop_map(|ttl| MessageOp::Put { ttl }),
        2 => Just(MessageOp::Look),
        6 => (token(), span(), payload()).prop_map(|(token, lease, payload)| MessageOp::Claim { token, lease, payload }),
        3 => (token(), span(), payload()).prop_map(|(token, lease, payload)| MessageOp::Renew { token, lease, payload }),
        4 => (token(), span(), result, payload())
            .prop_map(|(token, ttl, result, payload)| MessageOp::Commit { token, ttl, result, payload }),
        3 => token().prop_map(|token| MessageOp::Release { token }),
        1 => Just(MessageOp::Forget),
    ]
}

const STEPS: usize = 80;

fn operations() -> impl Strategy<Value = Vec<(MessageOp, u64, bool)>> {
    let passed = prop_oneof![4 => Just(0), 4 => 1..4_u64, 1 => 1..60_u64];
    vec((operation(), passed, any::<bool>()), 1..=STEPS)
}

#[test]
fn text_answers_as_the_model_whenever_it_is_dropped_once_over() {
    proptest!(support::config(12_000, STEPS as u64 / 2), |(operations in operations(), start in 0..1_u64 << 50)| {
        let (mut known, mut stored, mut now) = (Known::Nothing, None::<(String, u64)>, start);
        for (op, passed, drops) in operations {
            now += passed;
            stored = stored.filter(|(_, over_at)| !drops || now < *over_at);
            let record = stored.as_ref().map(|(text, _)| op::decode(text).expect("our own text"));
            let (reply, write) = op::step(record, &Op::Message(&op), at(now), Clock::Store).unwrap();
            match write {
                Write::Keep => {}
                Write::Delete => stored = None,
                Write::Put(record, ttl) => {
                    let text = op::encode(&record).unwrap();
                    prop_assert_eq!(op::decode(&text), Ok(record));
                    stored = Some((text, now + ttl.as_ms()));
                }
            }
            let (expected, after) = known.run(&op, now);
            prop_assert_eq!(reply, Reply::Message(expected), "{:?} at {} after {:?}", op, now - start, known);
            known = after;
        }
    });
}

#[test]
fn memory_answers_as_the_model_among_other_ids() {
    proptest!(support::config(8_000, STEPS as u64 / 2), |(operations in operations())| {
        let now = std::rc::Rc::new(std::cell::Cell::new(0));
        let clock = now.clone();
        let store = MemoryStore::new(100, OnFull::Deny, move || at(clock.get()));
        let key = Key::new("tg", Kind::Message, "id");
        let mut known = Known::Nothing;
        for (number, (op, passed, noise)) in operations.iter().enumerate() {
            now.set(now.get() + passed);
            if *noise {
                // A new id makes the table look for what is over.
                let other = Key::new("tg", Kind::Message, &format!("other {}", number % 10));
                let first = MessageOp::First { ttl: ms(5) };
                store.call(&Call { key: &other, op: Op::Message(&first) }).unwrap();
            }
            let reply = store.call(&Call { key: &key, op: Op::Message(op) }).unwrap();
            let (expected, after) = known.run(op, now.get());
            prop_assert_eq!(reply, Reply::Message(expected), "{:?} after {:?}", op, known);
            known = after;
        }
    });
}

/// Workers that race for one id, crash, are late and repeat themselves.
#[test]
fn work_is_committed_once_and_never_by_one_who_lost_it() {
    let act = (0..4_usize, 0..6_u8, 0..15_u64);
    proptest!(support::config(15_000, 60), |(acts in vec(act, 1..120))| {
        let mut id = Id::default();
        let mut now = 0;
        // Who was told last that the work is theirs, and who committed.
        let (mut holder, mut winner) = (None, None);
        let names = ["w0", "w1", "w2", "w3"];
        for (worker, act, passed) in acts {
            now += passed;
            let name = names[worker];
            match act {
                0 | 1 => {
                    if id.run(&claim(name, 20), now) == MessageReply::Fresh {
                        prop_assert_eq!(winner, None, "done work was given away");
                        holder = Some(worker);
                    }
                }
                2 => {
                    if id.run(&renew(name, 20), now) == YES {
                        prop_assert_eq!(winner, None);
                        holder = Some(worker);
                    }
                }
                3 | 4 => {
                    if id.run(&commit(name, 1 << 40, name), now) == YES {
                        prop_assert!(winner.is_none_or(|winner| winner == worker), "two winners");
                        winner = Some(worker);
                    } else {
                        prop_assert!(holder != Some(worker) || winner.is_some(), "the holder was refused");
                    }
                }
                _ => {
                    if id.run(&release(name), now) == YES {
                        prop_assert_eq!(winner, None, "done work was undone");
                        holder = None;
                    }
                }
            }
            if let Some(winner) = winner {
                prop_assert_eq!(id.run(&MessageOp::Look, now), duplicate(names[winner]));
            }
        }
    });
}

#[test]
fn what_is_over_is_over_by_value() {
    // Each of these a store may have dropped or kept; the answers are the same.
    let done = {
        let mut id = Id::default();
        id.run(&claim("a", 10), 0);
        id.run(&commit("a", 10, "1"), 5);
        id
    };
    let taken = {
        let mut id = Id::default();
        id.run(&claim("a", 10), 0);
        id.run(&claim("b", 10), 10);
        id
    };
    for kept in [done, taken] {
        for op in [
            claim("c", 9),
            renew("a", 9),
            commit("a", 9, "2"),
            release("a"),
            MessageOp::Forget,
            MessageOp::Look,
        ] {
            let (mut kept, mut dropped) = (Id(kept.0.clone()), Id::default());
            assert_eq!(kept.run(&op, 100), dropped.run(&op, 100), "{op:?} on {:?}", kept.0);
            for now in [101, 108, 109, 200] {
                assert_eq!(
                    kept.run(&MessageOp::Look, now),
                    dropped.run(&MessageOp::Look, now),
                    "after {op:?}"
                );
            }
        }
    }
}
