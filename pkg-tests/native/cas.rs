//! A database with a conditional write that takes its time, loses races, fails, answers garbage and expires
//! when it likes.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, MessageReply, Tag};
use tidegate::op::{Op, Reply};
use tidegate::{
    Call, Cas, CasStore, Clock, Error, Key, Kind, Limit, LimitOptions, Limits, Millis, Store,
    Timestamp,
};

/// Numbers that look random, the same for the same seed.
struct Dice(Cell<u64>);

impl Dice {
    fn below(&self, bound: u64) -> u64 {
        let mut x = self.0.get() ^ 0x9e37_79b9_7f4a_7c15;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        (x >> 11) % bound
    }
}

/// Waits so many polls.
struct Later(u64);

impl Future for Later {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

struct Database {
    texts: RefCell<HashMap<String, (String, u64)>>,
    now: Cell<u64>,
    clock: Clock,
    dice: Dice,
    /// Of a hundred conditional writes, how many fail for no reason.
    spurious: u64,
    /// Whether it drops what is over, or keeps it for ever.
    expires: bool,
    /// Which method fails, and whether a failing write has written all the same.
    fails: Cell<Option<(&'static str, bool)>>,
    writes: Cell<u64>,
}

impl Database {
    fn new(seed: u64) -> Self {
        Self {
            texts: RefCell::default(),
            now: Cell::new(1_000_000),
            clock: Clock::Store,
            dice: Dice(Cell::new(seed)),
            spurious: 0,
            expires: true,
            fails: Cell::new(None),
            writes: Cell::new(0),
        }
    }

    async fn wait(&self) {
        Later(self.dice.below(4)).await;
    }

    fn failing(&self, method: &'static str) -> Result<(), Error<String>> {
        match self.fails.get() {
            Some((failing, false)) if failing == method => {
                Err(Error::Store(format!("{method} failed")))
            }
            _ => Ok(()),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        let texts = self.texts.borrow();
        let (text, over_at) = texts.get(key)?;
        (!self.expires || self.now.get() < *over_at).then(|| text.clone())
    }
}

impl Cas for &Database {
    type Error = String;

    async fn get(&self, key: &str) -> Result<Option<String>, Error<String>> {
        self.wait().await;
        self.failing("get")?;
        let text = self.text(key);
        self.wait().await;
        Ok(text)
    }

    async fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&str>,
        next: &str,
        ttl: Millis,
    ) -> Result<bool, Error<String>> {
        self.wait().await;
        self.failing("compare_and_set")?;
        assert!(ttl > Millis::ZERO, "no key without a time to live");
        assert!(next.bytes().all(|b| (0x20..0x7f).contains(&b)), "{next:?}");
        self.writes.set(self.writes.get() + 1);
        let wins = self.text(key).as_deref() == expected && self.dice.below(100) >= self.spurious;
        if wins {
            let over_at = self.now.get() + ttl.as_ms();
            self.texts.borrow_mut().insert(key.into(), (next.into(), over_at));
        }
        self.wait().await;
        match self.fails.take() {
            Some(("compare_and_set", true)) => Err(Error::Store("the reply was lost".into())),
            other => {
                self.fails.set(other);
                Ok(wins)
            }
        }
    }

    async fn now(&self) -> Result<(Timestamp, Clock), Error<String>> {
        self.wait().await;
        self.failing("now")?;
        Ok((Timestamp::from_ms(self.now.get()), self.clock))
    }
}

/// Polls all of them in random order until all are ready.
fn race<T>(dice: &Dice, futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).enumerate().collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut ready: Vec<_> = running.iter().map(|_| None).collect();
    while !running.is_empty() {
        let next = usize::try_from(dice.below(running.len() as u64)).unwrap();
        if let Poll::Ready(answer) = running[next].1.as_mut().poll(&mut context) {
            ready[running.remove(next).0] = Some(answer);
        }
    }
    ready.into_iter().map(Option::unwrap).collect()
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
    }
}

type Answer = Result<Reply, Error<String>>;

fn call(database: &Database, key: &Key, op: Op<'_>) -> Answer {
    let mut answers = wait_for(CasStore(database).apply(&[Call { key, op }]));
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// The same operation from so many callers at once.
fn all_at_once(database: &Database, key: &Key, ops: &[Op<'_>]) -> Vec<Answer> {
    let one = async |op: Op<'_>| CasStore(database).apply(&[Call { key, op }]).await.remove(0);
    race(&database.dice, ops.iter().cloned().map(one))
}

fn limits(limit: u64, window: u64) -> Limits {
    Limits::new(vec![Limit::new(&LimitOptions::new(limit, Millis::from_ms(window))).unwrap()])
        .unwrap()
}

fn key(kind: Kind) -> Key {
    Key::new("tg", kind, "key")
}

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn claim(token: &str) -> MessageOp {
    MessageOp::Claim { token: tag(token), lease: Millis::from_ms(30_000), payload: None }
}

fn races() -> ProptestConfig {
    support::config(6_000, 20)
}

#[test]
fn a_budget_is_given_out_once_however_many_race_for_it() {
    proptest!(races(), |(seed in any::<u64>(), limit in 1..10_u64, callers in 1..20_usize, spurious in 0..60_u64)| {
        let database = Database { spurious, ..Database::new(seed) };
        let limits = limits(limit, 60_000);
        let answers = all_at_once(&database, &key(Kind::Limit), &vec![Op::Consume { limits: &limits, cost: 1 }; callers]);
        let mut left: Vec<_> = answers.into_iter().filter_map(|answer| match answer.unwrap() {
            Reply::Decision(decision) => decision.allowed().then_some(decision.remaining),
            other => panic!("{other:?}"),
        }).collect();
        left.sort_unstable();
        left.reverse();
        let admitted = limit.min(callers as u64);
        prop_assert_eq!(left, (limit - admitted..limit).rev().collect::<Vec<_>>(), "each unit once");
    });
}

#[test]
fn a_message_has_one_winner() {
    proptest!(races(), |(seed in any::<u64>(), callers in 1..20_usize, spurious in 0..60_u64)| {
        let database = Database { spurious, ..Database::new(seed) };
        let claims: Vec<_> = (0..callers).map(|caller| claim(&format!("t{caller}"))).collect();
        let ops: Vec<_> = claims.iter().map(Op::Message).collect();
        let answers = all_at_once(&database, &key(Kind::Message), &ops);
        let won = |answer: &&Answer| **answer == Ok(Reply::Message(MessageReply::Fresh));
        prop_assert_eq!(answers.iter().filter(won).count(), 1);

        let first = MessageOp::First { ttl: Millis::from_ms(1_000) };
        let answers = all_at_once(&database, &Key::new("tg", Kind::Message, "other"), &vec![Op::Message(&first); callers]);
        let won = |answer: &&Answer| **answer == Ok(Reply::Message(MessageReply::Flag(true)));
        prop_assert_eq!(answers.iter().filter(won).count(), 1);
    });
}

#[test]
fn an_alarm_fires_once() {
    proptest!(races(), |(seed in any::<u64>(), callers in 1..20_usize, spurious in 0..60_u64, sliding in any::<bool>())| {
        let database = Database { spurious, ..Database::new(seed) };
        let trigger = if sliding { Trigger::Sliding } else { Trigger::Tumbling };
        let policy = BurstPolicy::new(3, Millis::from_ms(60_000), Millis::ZERO, trigger).unwrap();
        let op = Op::Observe { policy: &policy, weight: 1, nonce: None };
        let answers = all_at_once(&database, &key(Kind::Burst), &vec![op; callers]);
        let counts = |fired: bool| -> Vec<u64> {
            answers.iter().filter_map(|answer| match answer {
                Ok(Reply::Observation(seen)) => (seen.fired == fired).then_some(seen.count),
                other => panic!("{other:?}"),
            }).collect()
        };
        prop_assert_eq!(counts(true), if callers < 3 { vec![] } else { vec![3] });
    });
}

#[test]
fn a_race_that_is_never_won_ends_and_writes_nothing() {
    let database = Database { spurious: 100, ..Database::new(7) };
    let limits = limits(5, 1_000);
    let answer = call(&database, &key(Kind::Limit), Op::Consume { limits: &limits, cost: 1 });
    assert_eq!(answer, Err(Error::Contention));
    assert_eq!(database.writes.get(), 256);
    assert!(database.texts.borrow().is_empty());
    // What has nothing to write has no race to lose.
    assert!(call(&database, &key(Kind::Limit), Op::Peek { limits: &limits, cost: 1 }).is_ok());
}

#[test]
fn a_store_that_throws_is_an_error_of_that_call_alone() {
    let limits = limits(5, 1_000);
    let consume = Op::Consume { limits: &limits, cost: 1 };
    for method in ["get", "compare_and_set", "now"] {
        let database = Database::new(7);
        database.fails.set(Some((method, false)));
        let answer = call(&database, &key(Kind::Limit), consume.clone());
        assert_eq!(answer, Err(Error::Store(format!("{method} failed"))), "kept whole");
        database.fails.set(None);
        assert!(call(&database, &key(Kind::Limit), consume.clone()).is_ok());
    }
    let database = Database::new(7);
    let (good, bad) = (key(Kind::Limit), Key::new("tg", Kind::Limit, "bad"));
    database.texts.borrow_mut().insert(bad.as_str().into(), ("garbage".into(), u64::MAX));
    let calls = [&good, &bad, &good].map(|key| Call { key, op: consume.clone() });
    let answers = wait_for(CasStore(&database).apply(&calls));
    let left = |answer: &Answer| match answer {
        Ok(Reply::Decision(decision)) => decision.remaining,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (left(&answers[0]), &answers[1], left(&answers[2])),
        (4, &Err(Error::Corrupt), 3),
        "in order"
    );
}

#[test]
fn garbage_is_an_error_and_stays_as_it_is() {
    let limits = limits(5, 1_000);
    let policy =
        BurstPolicy::new(3, Millis::from_ms(1_000), Millis::ZERO, Trigger::Tumbling).unwrap();
    for garbage in [
        "",
        "{}",
        "null",
        "1",
        "2l|a=b,1,1,1,1,1.",
        "1l|a=b,1,1,1,4503599627370497,1.",
        "1l|a=b,1,1,1,1,1",
        "1x|.",
        "\u{0}",
        "0",
    ] {
        let database = Database::new(7);
        let ops = [
            (Kind::Limit, Op::Consume { limits: &limits, cost: 1 }),
            (Kind::Limit, Op::Peek { limits: &limits, cost: 1 }),
            (Kind::Limit, Op::Reset { limits: &limits }),
            (Kind::Message, Op::Message(&MessageOp::Forget)),
            (Kind::Burst, Op::Observe { policy: &policy, weight: 1, nonce: None }),
        ];
        for (kind, op) in ops {
            let key = key(kind);
            database.texts.borrow_mut().insert(key.as_str().into(), (garbage.into(), u64::MAX));
            assert_eq!(call(&database, &key, op), Err(Error::Corrupt), "{garbage:?}");
            assert_eq!(database.text(key.as_str()).as_deref(), Some(garbage));
        }
    }
    // A record of ours under the wrong kind of key is not an empty state either.
    let database = Database::new(7);
    call(&database, &key(Kind::Limit), Op::Consume { limits: &limits, cost: 1 }).unwrap();
    assert_eq!(
        call(&database, &key(Kind::Limit), Op::Message(&MessageOp::Look)),
        Err(Error::Corrupt)
    );
    assert_eq!(
        call(&database, &key(Kind::Limit), Op::Clear),
        Err(Error::Unsupported("this operation needs another kind of store"))
    );
}

#[test]
fn an_attempt_whose_reply_was_lost_can_be_made_again() {
    let database = Database::new(7);
    let lost = Err(Error::Store("the reply was lost".into()));
    let key = key(Kind::Message);
    database.fails.set(Some(("compare_and_set", true)));
    assert_eq!(call(&database, &key, Op::Message(&claim("a"))), lost);
    assert_eq!(
        call(&database, &key, Op::Message(&claim("a"))),
        Ok(Reply::Message(MessageReply::Fresh))
    );
    let commit = MessageOp::Commit {
        token: tag("a"),
        ttl: Millis::from_ms(1_000),
        result: None,
        payload: None,
    };
    database.fails.set(Some(("compare_and_set", true)));
    assert_eq!(call(&database, &key, Op::Message(&commit)), lost);
    assert_eq!(
        call(&database, &key, Op::Message(&commit)),
        Ok(Reply::Message(MessageReply::Flag(true)))
    );

    let key = Key::new("tg", Kind::Burst, "key");
    let policy =
        BurstPolicy::new(1, Millis::from_ms(1_000), Millis::ZERO, Trigger::Tumbling).unwrap();
    let nonce = tag("n");
    let observe = Op::Observe { policy: &policy, weight: 1, nonce: Some(&nonce) };
    database.fails.set(Some(("compare_and_set", true)));
    assert_eq!(call(&database, &key, observe.clone()), lost);
    let Ok(Reply::Observation(again)) = call(&database, &key, observe) else { panic!() };
    assert!(again.fired && again.replay && again.count == 1);
}

/// "A message whose handler failed has not been seen", by nobody, whatever their clock says.
#[test]
fn what_was_released_is_free_for_a_caller_whose_clock_is_behind() {
    for gives_up in [MessageOp::Release { token: tag("a") }, MessageOp::Forget] {
        let database = Database { clock: Clock::Caller, expires: false, ..Database::new(7) };
        let key = key(Kind::Message);
        call(&database, &key, Op::Message(&claim("a"))).unwrap();
        call(&database, &key, Op::Message(&gives_up)).unwrap();
        database.now.set(database.now.get() - 5_000);
        assert_eq!(
            call(&database, &key, Op::Message(&claim("b"))),
            Ok(Reply::Message(MessageReply::Fresh))
        );
    }
}

#[derive(Clone, Debug)]
enum Act {
    Consume(u64),
    Refund(u64),
    Block(u64),
    Unblock,
    Reset,
    Message(MessageOp),
    Observe(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let token = || prop_oneof![Just("a"), Just("b")].prop_map(tag);
    let span = || (1..60_u64).prop_map(Millis::from_ms);
    prop_oneof![
        6 => (1..5_u64).prop_map(Act::Consume),
        2 => (1..5_u64).prop_map(Act::Refund),
        1 => (1..50_u64).prop_map(Act::Block),
        1 => Just(Act::Unblock),
        1 => Just(Act::Reset),
        2 => span().prop_map(|ttl| Act::Message(MessageOp::First { ttl })),
        3 => (token(), span()).prop_map(|(token, lease)| Act::Message(MessageOp::Claim { token, lease, payload: None })),
        2 => (token(), span()).prop_map(|(token, lease)| Act::Message(MessageOp::Renew { token, lease, payload: None })),
        2 => (token(), span())
            .prop_map(|(token, ttl)| Act::Message(MessageOp::Commit { token, ttl, result: None, payload: None })),
        2 => token().prop_map(|token| Act::Message(MessageOp::Release { token })),
        1 => Just(Act::Message(MessageOp::Forget)),
        1 => Just(Act::Message(MessageOp::Look)),
        4 => (0..6_u64).prop_map(Act::Observe),
    ]
}

/// A store that expires on time, one that never does, and one that loses races answer the same.
#[test]
fn a_store_that_expires_late_is_as_exact_as_one_that_does_not() {
    let acts = vec((act(), 0..4_u8, 1..80_u64), 1..60);
    proptest!(support::config(20_000, 30), |(seed in any::<u64>(), acts in acts)| {
        let prompt = Database::new(seed);
        let late = Database { expires: false, ..Database::new(seed) };
        let losing = Database { spurious: 50, ..Database::new(seed) };
        let limits = limits(7, 60);
        let policy = BurstPolicy::new(3, Millis::from_ms(20), Millis::from_ms(30), Trigger::Sliding).unwrap();
        for (act, moves, passed) in acts {
            let nonce = match act { Act::Observe(n) => tag(&format!("n{n}")), _ => tag("none") };
            let (kind, op) = match &act {
                Act::Consume(cost) => (Kind::Limit, Op::Consume { limits: &limits, cost: *cost }),
                Act::Refund(cost) => (Kind::Limit, Op::Refund { limits: &limits, cost: *cost }),
                Act::Block(ms) => (Kind::Limit, Op::Block { duration: Millis::from_ms(*ms) }),
                Act::Unblock => (Kind::Limit, Op::Unblock),
                Act::Reset => (Kind::Limit, Op::Reset { limits: &limits }),
                Act::Message(op) => (Kind::Message, Op::Message(op)),
                Act::Observe(_) => (Kind::Burst, Op::Observe { policy: &policy, weight: 1, nonce: Some(&nonce) }),
            };
            let passed = if moves == 0 { passed } else { 0 };
            let answers = [&prompt, &late, &losing].map(|database| {
                database.now.set(database.now.get() + passed);
                call(database, &key(kind), op.clone())
            });
            prop_assert!(answers[0].is_ok());
            prop_assert_eq!(&answers[0], &answers[1], "late, {:?}", act);
            prop_assert_eq!(&answers[0], &answers[2], "losing, {:?}", act);
        }
    });
}
