//! The script on a real server against the steps in Rust: random operations on both, every reply and every
//! stored byte equal. Time is an argument of the script under test only.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use redis::Connection;
use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, Tag};
use tidegate::op::{self, Op, Record, Reply, Write};
use tidegate::redis::{SCRIPT, decode, encode, runs};
use tidegate::{Algorithm, Clock, Delta, Limit, LimitOptions, Limits, Millis, Timestamp};

/// Keeps records long after they are over, and adds this to what the step asked for.
const KEPT_MS: u64 = 10_000_000;

struct Server {
    process: Child,
    connection: Connection,
}

impl Server {
    fn start(program: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program}: {error}; install Debian's redis-server or valkey-server")
            });
        let client = redis::Client::open(("127.0.0.1", port)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match client.get_connection() {
                Ok(connection) => return Self { process, connection },
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&mut self, script: &redis::Script, now: Timestamp, batch: &[Case]) -> Vec<String> {
        let mut call = script.prepare_invoke();
        call.arg(now.as_ms().to_string());
        for case in batch {
            call.key(case.key());
        }
        for run in runs(&batch.iter().map(Case::encoded).collect::<Vec<_>>()) {
            call.arg(run);
        }
        match call.invoke(&mut self.connection).expect("the script runs") {
            redis::Value::Array(list) => {
                redis::from_redis_value(redis::Value::Array(list)).unwrap()
            }
            text => vec![redis::from_redis_value(text).unwrap()],
        }
    }

    fn stored(&mut self, (key, field): &(String, Option<String>)) -> (Option<String>, i64) {
        let mut pipe = redis::pipe();
        match field {
            Some(field) => pipe.hget(key, field),
            None => pipe.get(key),
        };
        pipe.pttl(key).query(&mut self.connection).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Clone, Debug)]
enum Action {
    Consume(u64),
    Peek(u64),
    Refund(u64),
    Block(u64),
    Unblock,
    Reset,
    Reserve { cost: u64, units: u64 },
    Add { delta: Option<Delta>, cost: u64 },
    GiveBack(Delta),
    Message(MessageOp),
    Observe { policy: BurstPolicy, weight: u64, nonce: Option<Tag> },
    Increment(u64),
    Has,
    Set(u64),
    SetIfNotExists(u64),
}

#[derive(Clone, Debug)]
struct Case {
    key: u8,
    /// Where the record is in the hash that the key holds, if it holds one.
    field: Option<u8>,
    limits: Limits,
    action: Action,
}

impl Case {
    fn kind(&self) -> char {
        match self.action {
            Action::Message(_) | Action::Has | Action::Set(_) | Action::SetIfNotExists(_) => 'm',
            Action::Observe { .. } => 'b',
            Action::Increment(_) => 'c',
            _ => 'l',
        }
    }

    fn key(&self) -> String {
        let kind = if self.field.is_some() { 'h' } else { self.kind() };
        format!("tg:{kind}:{}", self.key)
    }

    fn field(&self) -> Option<String> {
        self.field.map(|field| format!("{}:{field}", self.kind()))
    }

    fn place(&self) -> (String, Option<String>) {
        (self.key(), self.field())
    }

    fn encoded(&self) -> String {
        let words = encode(&self.op());
        self.field().map_or(words.clone(), |field| format!("{words}\n{field}"))
    }

    fn op(&self) -> Op<'_> {
        let limits = &self.limits;
        match &self.action {
            Action::Consume(cost) => Op::Consume { limits, cost: *cost },
            Action::Peek(cost) => Op::Peek { limits, cost: *cost },
            Action::Refund(cost) => Op::Refund { limits, cost: *cost },
            Action::Block(ms) => Op::Block { duration: Millis::from_ms(*ms) },
            Action::Unblock => Op::Unblock,
            Action::Reset => Op::Reset { limits },
            Action::Reserve { cost, units } => Op::Reserve { limits, cost: *cost, units: *units },
            Action::Add { delta, cost } => Op::Add { limits, delta: *delta, cost: *cost },
            Action::GiveBack(delta) => Op::GiveBack { limits, delta: *delta },
            Action::Message(op) => Op::Message(op),
            Action::Observe { policy, weight, nonce } => {
                Op::Observe { policy, weight: *weight, nonce: nonce.as_ref() }
            }
            Action::Increment(window) => Op::Increment { window: Millis::from_ms(*window) },
            Action::Has => Op::Has,
            Action::Set(ttl) => Op::Set { ttl: Millis::from_ms(*ttl) },
            Action::SetIfNotExists(ttl) => Op::SetIfNotExists { ttl: Millis::from_ms(*ttl) },
        }
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    let algorithm = prop_oneof![
        Just(Algorithm::LeakyBucket),
        Just(Algorithm::FixedWindow),
        Just(Algorithm::SlidingWindow)
    ];
    let limit = prop_oneof![1_u64..12, Just(7), Just(100), Just(10_000_000), Just((1 << 51) - 1)];
    let window =
        prop_oneof![1_u64..60, Just(50), Just(333), Just(1_000), Just(60_000), Just(2_592_000_000)];
    let names = prop_oneof![Just("default"), Just("a"), Just("a limit of some length, hashed")];
    let burst = prop::option::of(1_u64..20);
    (names, algorithm, limit, window, burst, any::<bool>()).prop_filter_map(
        "a policy that makes sense",
        |(name, algorithm, limit, window, burst, strict)| {
            let bucket = algorithm == Algorithm::LeakyBucket;
            Limit::new(&LimitOptions {
                name: name.into(),
                algorithm,
                burst: burst.filter(|_| bucket),
                strict: strict && bucket,
                ..LimitOptions::new(limit, Millis::from_ms(window))
            })
            .ok()
        },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    prop::collection::vec(limit(), 1..4)
        .prop_filter_map("limits that make sense together", |limits| Limits::new(limits).ok())
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..4, 2 => 1_u64..200, 1 => Just((1 << 53) - 1), 1 => 1_u64..(1 << 51)]
}

fn message() -> impl Strategy<Value = MessageOp> {
    let results = prop_oneof![Just("{\"a\":\"x|y;z\"}"), Just("1"), Just("\"\\u00fc\"")];
    support::message(results.prop_map(Into::into))
}

fn observe() -> impl Strategy<Value = Action> {
    let trigger = prop_oneof![Just(Trigger::Tumbling), Just(Trigger::Sliding)];
    let window = prop_oneof![Just(7_u64), Just(100), Just(160), Just(1_000)];
    let cooldown = prop_oneof![Just(0_u64), 1_u64..3_000];
    (1_u64..12, window, cooldown, trigger, 1_u64..5, prop::option::of(support::tag())).prop_map(
        |(threshold, window, cooldown, trigger, weight, nonce)| {
            let (window, cooldown) = (Millis::from_ms(window), Millis::from_ms(cooldown));
            let policy = BurstPolicy::new(threshold, window, cooldown, trigger).unwrap();
            Action::Observe { policy, weight, nonce }
        },
    )
}

/// Of a few tiers. The span is for now how long ago it was; [`Model::dated`] makes a moment of it.
fn delta() -> impl Strategy<Value = Delta> {
    let ago = prop_oneof![4 => 0_u64..50, 4 => 0_u64..3_000, 1 => 0_u64..100_000];
    (0_u64..70, 0_u64..6, 1_u64..9, ago).prop_map(|(node, seq, units, ago)| Delta {
        node,
        seq,
        units,
        span: Timestamp::from_ms(ago),
    })
}

fn tier() -> impl Strategy<Value = Action> {
    let cost = || prop_oneof![2 => Just(0_u64), 3 => 1_u64..5, 1 => cost()];
    prop_oneof![
        (cost(), 0_u64..200).prop_map(|(cost, units)| Action::Reserve { cost, units }),
        (prop::option::of(delta()), cost()).prop_map(|(delta, cost)| Action::Add { delta, cost }),
        delta().prop_map(Action::GiveBack),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        16 => cost().prop_map(Action::Consume),
        3 => cost().prop_map(Action::Peek),
        3 => cost().prop_map(Action::Refund),
        1 => (1_u64..2_000).prop_map(Action::Block),
        1 => Just(Action::Unblock),
        1 => Just(Action::Reset),
        12 => tier(),
        10 => message().prop_map(Action::Message),
        8 => observe(),
        4 => prop_oneof![1_u64..60, Just(333), Just(60_000)].prop_map(Action::Increment),
        1 => Just(Action::Has),
        1 => (1_u64..500).prop_map(Action::Set),
        2 => (1_u64..500).prop_map(Action::SetIfNotExists),
    ]
}

/// What Rust answers, and what it would store.
struct Model {
    records: HashMap<(String, Option<String>), String>,
    clock: Clock,
    /// The time to live of what the last operation wrote.
    written: Option<u64>,
}

impl Model {
    /// A tier's operation is on one limit, and its delta of the window that the key is in, or of one before.
    fn dated(&self, mut case: Case, now: Timestamp) -> Case {
        let text = self.records.get(&case.place());
        let entry = match text.map(|text| op::decode(text).unwrap()) {
            Some(Record::Limits(record)) => record.entries.first().cloned(),
            _ => None,
        };
        let delta = match &mut case.action {
            Action::Add { delta: Some(delta), .. } | Action::GiveBack(delta) => Some(delta),
            Action::Add { .. } | Action::Reserve { .. } => None,
            _ => return case,
        };
        if let Some(delta) = delta {
            let ago = delta.span.as_ms();
            let dated = Timestamp::from_ms(now.as_ms().saturating_add(200).saturating_sub(ago));
            let known = entry.map(|entry| entry.state.at).filter(|_| ago % 3 > 0);
            delta.span = known.unwrap_or(dated);
        }
        case.limits = Limits::new(vec![case.limits.first().unwrap().clone()]).unwrap();
        case
    }

    fn run(&mut self, case: &Case, now: Timestamp) -> Reply {
        let place = case.place();
        let record = self.records.get(&place).map(|text| op::decode(text).unwrap());
        let (reply, write) = op::step(record, &case.op(), now, self.clock).unwrap();
        self.written = None;
        match write {
            Write::Keep => {}
            Write::Delete => {
                self.records.remove(&place);
            }
            Write::Put(record, ttl) => {
                self.records.insert(place, op::encode(&record).unwrap());
                self.written = Some(ttl.as_ms());
            }
        }
        reply
    }
}

/// The script with the time as an argument, and with records that outlive the test.
fn script_under_test(clock: Clock) -> redis::Script {
    let one_clock = clock == Clock::Store;
    let timed = SCRIPT
        .replace("tonumber(ARGV[1]), false", &format!("tonumber(ARGV[1]), {one_clock}"))
        .replace("'PX', px)", &format!("'PX', px + {KEPT_MS})"))
        .replace("call('PTTL', key) < ms", &format!("call('PTTL', key) < ms + {KEPT_MS}"))
        .replace("'PEXPIRE', key, px)", &format!("'PEXPIRE', key, px + {KEPT_MS})"));
    assert!(timed.len() > SCRIPT.len());
    redis::Script::new(&timed)
}

fn differential(program: &str, clock: Clock) {
    let operations = support::soak().unwrap_or(50_000);
    let mut server = Server::start(program);
    let script = script_under_test(clock);
    let mut model = Model { records: HashMap::new(), clock, written: None };
    let mut runner = TestRunner::new(Config::default());
    let policies: Vec<Limits> =
        (0..24).map(|_| limits().new_tree(&mut runner).unwrap().current()).collect();
    let step = prop_oneof![8 => 0_i64..40, 3 => 0_i64..2_000, 1 => -100_i64..0, 1 => -3_000_000_000_i64..3_000_000_000];
    let field = prop::option::weighted(0.25, 0_u8..3);
    let case = (0_u8..12, field, 0_usize..4, any::<prop::sample::Index>(), 0_u8..3, action());
    let mut now = 1_790_000_000_000_i64;
    for _ in 0..operations / 50 {
        now = (now + step.new_tree(&mut runner).unwrap().current())
            .clamp(1_700_000_000_000, 1_900_000_000_000);
        let at = Timestamp::from_ms(now as u64);
        // Mostly one policy per key, sometimes any: policies change on live keys. And often the same again.
        let mut batch: Vec<Case> = Vec::new();
        for _ in 0..50 {
            let (key, field, other, any, again, action) =
                case.new_tree(&mut runner).unwrap().current();
            let policy = if other == 0 { any.index(policies.len()) } else { usize::from(key) };
            let fresh = Case { key, field, limits: policies[policy].clone(), action };
            let last = batch.last().filter(|_| again == 0).cloned();
            let case = last.map_or_else(|| model.dated(fresh, at), |last| Case { key, ..last });
            batch.push(case);
        }
        let ops: Vec<Op<'_>> = batch.iter().map(Case::op).collect();
        let replies = decode(&ops, &server.run(&script, at, &batch)).unwrap();
        for (case, reply) in batch.iter().zip(replies) {
            let expected = model.run(case, at);
            assert_eq!(reply, Ok(expected), "{case:?} at {now}");
        }
        for case in &batch {
            let place = case.place();
            let (text, ttl) = server.stored(&place);
            let expected = model.records.get(&place);
            assert_eq!(text.as_ref(), expected, "{place:?} at {now}");
            if expected.is_some() {
                assert!(ttl > 0, "{place:?} has a time to live");
            }
        }
        // What the last operation wrote lives as long as the step said, but for what has passed since; a hash
        // as long as the longest of what is in it.
        if let Some(ttl) = model.written {
            let last = &batch[49];
            let left = server.stored(&last.place()).1;
            let asked = i64::try_from(ttl + KEPT_MS).unwrap();
            let most = if last.field.is_some() { i64::MAX } else { asked };
            assert!((asked - 5_000..=most).contains(&left), "{last:?}: {left} of {asked}");
        }
    }
}

#[test]
fn redis_decides_as_rust_does() {
    differential("redis-server", Clock::Store);
}

#[test]
fn redis_decides_as_rust_does_on_callers_clocks() {
    differential("redis-server", Clock::Caller);
}

#[test]
fn valkey_decides_as_rust_does() {
    differential("valkey-server", Clock::Store);
}

#[test]
fn valkey_decides_as_rust_does_on_callers_clocks() {
    differential("valkey-server", Clock::Caller);
}
