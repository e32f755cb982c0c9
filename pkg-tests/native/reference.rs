//! The limits against a model in exact rational arithmetic that shares no code with them: what a decision
//! tells is found by searching for what its words mean, not by the formulas of the core.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "reference/codec.rs"]
mod codec;
#[path = "reference/generate.rs"]
mod generate;
#[path = "reference/model.rs"]
mod model;
#[path = "reference/properties.rs"]
mod properties;
mod support;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use generate::{Act, Cost, STEPS, Sequence, When, sequence};
use model::{Algo, Memory, Spec, Told};
use proptest::test_runner::{TestError, TestRunner};
use tidegate::op::{self, Op, Record, Reply, Write};
use tidegate::{
    Algorithm, Call, Clock, Decision, Key, Kind, Limit, LimitOptions, Limits, MAX_RECORD_CHARS,
    MemoryStore, Millis, OnFull, Reason, Timestamp,
};

const YEAR: u64 = 365 * 86_400_000;
const DAY: u64 = 86_400_000;

// ---- the same limit for the core and for the model

fn options(spec: &Spec) -> LimitOptions {
    LimitOptions {
        name: spec.name.into(),
        algorithm: match spec.algo {
            Algo::Bucket => Algorithm::LeakyBucket,
            Algo::Fixed => Algorithm::FixedWindow,
            Algo::Sliding => Algorithm::SlidingWindow,
        },
        burst: spec.burst,
        strict: spec.strict,
        ..LimitOptions::new(spec.limit, Millis::from_ms(spec.window))
    }
}

fn limits(specs: &[Spec]) -> Limits {
    let limit = |spec| Limit::new(&options(spec)).expect("the model accepts it");
    Limits::new(specs.iter().map(limit).collect()).expect("few and short")
}

fn told(decision: &Decision) -> Told {
    Told {
        reason: match decision.reason {
            Reason::Ok => "ok",
            Reason::Limited => "limited",
            Reason::Never => "never",
            Reason::Blocked => "blocked",
        },
        decided_by: decision.decided_by,
        limit: decision.limit,
        remaining: decision.remaining,
        retry_after: decision.retry_after.map(Millis::as_ms),
        reset_after: decision.reset_after.as_ms(),
    }
}

// ---- what is run

/// A core under test: takes an operation on its one key, and drops the record where it may and is told to.
trait Core {
    fn run(&mut self, op: &Op<'_>, now: u64) -> Reply;
    fn drop_if_over(&mut self, _now: u64) {}
    fn another_key(&mut self, _limits: &Limits, _now: u64) {}
    /// Whether it drops what is over as soon as it writes, which shows once a clock steps back.
    fn drops_when_writing(&self) -> bool {
        false
    }
}

struct Text {
    clock: Clock,
    /// The text, and from when on it may be dropped.
    stored: Option<(String, u64)>,
}

impl Text {
    const fn new(clock: Clock) -> Self {
        Self { clock, stored: None }
    }

    /// What an operation answers, and what it would have stored.
    fn step(&self, op: &Op<'_>, now: u64) -> (Reply, Write) {
        let stored = self.stored.as_ref().map(|(text, _)| text);
        let record = stored.map(|text| op::decode(text).expect("our own text"));
        op::step(record, op, Timestamp::from_ms(now), self.clock).expect("a step")
    }
}

fn checked_text(record: &Record) -> String {
    let text = op::encode(record).expect("few enough limits");
    assert!(text.len() <= MAX_RECORD_CHARS, "{} characters", text.len());
    assert!(text.bytes().all(|b| (0x20..0x7f).contains(&b)), "{text:?}");
    assert_eq!(op::decode(&text).as_ref(), Ok(record), "{text}");
    text
}

impl Core for Text {
    fn run(&mut self, op: &Op<'_>, now: u64) -> Reply {
        let (reply, write) = self.step(op, now);
        match write {
            Write::Keep => {}
            Write::Delete => self.stored = None,
            Write::Put(record, ttl) => {
                assert!(ttl > Millis::ZERO, "no key without a time to live");
                self.stored = Some((checked_text(&record), now + ttl.as_ms()));
            }
        }
        reply
    }

    fn drop_if_over(&mut self, now: u64) {
        self.stored = self.stored.take().filter(|(_, over_at)| now < *over_at);
    }

    fn drops_when_writing(&self) -> bool {
        true
    }
}

struct InMemory<C> {
    store: MemoryStore<C>,
    now: Rc<Cell<u64>>,
    key: Key,
    others: u64,
}

fn in_memory() -> InMemory<impl Fn() -> Timestamp> {
    let now = Rc::new(Cell::new(0));
    let clock = now.clone();
    InMemory {
        store: MemoryStore::new(1_000, OnFull::Deny, move || Timestamp::from_ms(clock.get())),
        now,
        key: Key::new("tg", Kind::Limit, "key"),
        others: 0,
    }
}

impl<C: Fn() -> Timestamp> Core for InMemory<C> {
    fn run(&mut self, op: &Op<'_>, now: u64) -> Reply {
        self.now.set(now);
        let call = Call { key: &self.key, op: op.clone() };
        self.store.call(&call).expect("memory answers")
    }

    fn another_key(&mut self, limits: &Limits, now: u64) {
        self.now.set(now);
        self.others += 1;
        let key = Key::new("tg", Kind::Limit, &format!("other {}", self.others % 50));
        let op = Op::Consume { limits, cost: 1 };
        self.store.call(&Call { key: &key, op }).expect("memory answers");
    }
}

fn beside(number: u64, by: i8) -> u64 {
    number.saturating_add_signed(i64::from(by))
}

/// Runs a sequence on the core and on the model, and compares every field of every decision. Answers the time then.
fn compare(sequence: &Sequence, core: &mut dyn Core, clock: Clock, steps_back: bool) -> u64 {
    let rebases = clock == Clock::Store;
    let built: Vec<Limits> = sequence.limiters.iter().map(|specs| limits(specs)).collect();
    let mut memory = Memory::default();
    let mut now = sequence.start;
    let mut last = Told::default();
    for (number, step) in sequence.steps.iter().enumerate() {
        let at = step.limiter.index(built.len());
        let (specs, limits) = (&sequence.limiters[at], &built[at]);
        let window = specs[0].window;
        now = match step.when {
            When::Same => now,
            When::Forward(ms) => now + ms,
            When::Retry(by) => now.max(beside(now + last.retry_after.unwrap_or(0), by)),
            When::Reset(by) => now.max(beside(now + last.reset_after, by)),
            When::Seam(by) => now.max(beside((now / window + 1) * window, by)),
            When::Part(part) => now + window.saturating_mul(u64::from(part)) / 16,
            When::Back(ms) => now.saturating_sub(ms),
            When::DrainsBack(drains, by) => {
                let back = specs[0].full_drain() * u64::from(drains);
                now.saturating_sub(beside(back, by))
            }
        };
        // Even the longest drain, of 2^51 ms, is to end while a double holds the time.
        now = now.min((1 << 52) + (1 << 50));
        if !steps_back {
            if step.drop {
                core.drop_if_over(now);
            }
            if step.another_key {
                core.another_key(limits, now);
            }
        }
        let least = specs.iter().map(Spec::capacity).min().unwrap();
        let cost = match step.cost {
            Cost::Small(cost) | Cost::Huge(cost) => cost,
            Cost::Capacity(by) => beside(least, by).max(1),
            Cost::Remaining(by) => beside(last.remaining, by).max(1),
        };
        let (op, expected) = match step.act {
            Act::Consume => {
                (Op::Consume { limits, cost }, Some(memory.consume(specs, cost, now, rebases)))
            }
            Act::Peek => (Op::Peek { limits, cost }, Some(memory.peek(specs, cost, now, rebases))),
            Act::Refund => {
                // With nothing to give back to, whether what is over is dropped now or later is the store's affair.
                if steps_back && !memory.knows(specs) {
                    continue;
                }
                memory.refund(specs, cost, now, rebases);
                (Op::Refund { limits, cost }, None)
            }
            Act::Block(ms) => {
                memory.block(ms, now, rebases);
                let duration = Millis::from_ms(ms);
                (Op::Block { duration }, None)
            }
            Act::Unblock => {
                if memory.unblock() && core.drops_when_writing() {
                    memory.drop_if_over(now);
                }
                (Op::Unblock, None)
            }
            Act::Reset => {
                memory.reset(specs);
                if core.drops_when_writing() {
                    memory.drop_if_over(now);
                }
                (Op::Reset { limits }, None)
            }
        };
        let reply = core.run(&op, now);
        match (reply, expected) {
            (Reply::Decision(decision), Some(expected)) => {
                assert_eq!(
                    told(&decision),
                    expected,
                    "step {number} at {now}, cost {cost}: {step:?}"
                );
                last = expected;
            }
            (Reply::Done, None) => {}
            (reply, expected) => panic!("{reply:?} instead of {expected:?}"),
        }
    }
    now
}

/// Runs `test` on enough random sequences; tells how many operations that were in a long run.
fn sequences(name: &str, short: u64, steps_back: bool, test: impl Fn(&Sequence)) {
    let operations = AtomicU64::new(0);
    let mut runner = TestRunner::new(support::config(short, STEPS as u64 * 2 / 5));
    let result = runner.run(&sequence(steps_back), |sequence| {
        operations.fetch_add(sequence.steps.len() as u64, Ordering::Relaxed);
        test(&sequence);
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, smallest)) => panic!("{why}\nsmallest: {smallest:?}"),
        Err(error) => panic!("{error}"),
    }
    if support::soak().is_some() {
        println!("{name}: {} operations", operations.into_inner());
    }
}

const SHORT: u64 = 4_000;

#[test]
fn text_decides_as_the_model_and_may_be_dropped_when_over() {
    sequences("text, expiring", SHORT, false, |sequence| {
        compare(sequence, &mut Text::new(Clock::Store), Clock::Store, false);
    });
}

#[test]
fn text_decides_as_the_model_while_the_stores_clock_steps_back() {
    sequences("text, store's clock steps", SHORT, true, |sequence| {
        compare(sequence, &mut Text::new(Clock::Store), Clock::Store, true);
    });
}

#[test]
fn text_decides_as_the_model_while_callers_clocks_differ() {
    sequences("text, callers' clocks", SHORT, true, |sequence| {
        compare(sequence, &mut Text::new(Clock::Caller), Clock::Caller, true);
    });
}

#[test]
fn memory_decides_as_the_model_among_other_keys() {
    sequences("memory, other keys", SHORT, false, |sequence| {
        compare(sequence, &mut in_memory(), Clock::Store, false);
    });
}

#[test]
fn memory_decides_as_the_model_while_its_clock_steps_back() {
    sequences("memory, clock steps", SHORT, true, |sequence| {
        compare(sequence, &mut in_memory(), Clock::Store, true);
    });
}
