//! Nodes, network, shared store and clients, as events in virtual microseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tidegate::op::{self, Op, Reply, Write};
use tidegate::tier::{Ask, Mode, Question, TRUSTED_FOR, Tier, Verdict, over_admission_bound};
use tidegate::{
    Algorithm, Clock, Delta, Limit, LimitOptions, Limits, Millis, Shape, Share, Slot, Timestamp,
};

use crate::audit::{Admission, Audit, Grant, SET_BACK};
use crate::random::Random;

const DEADLINE_US: u64 = 300_000;
const EPOCH_MS: u64 = 1_700_000_000_000;

pub(crate) fn deny_cache(_: &mut Random) -> Mode {
    Mode::DenyCache
}

pub(crate) fn lease(random: &mut Random) -> Mode {
    Mode::Lease(random.pick(&[u64::MAX, u64::MAX, 3, 10]))
}

pub(crate) fn eager(random: &mut Random) -> Mode {
    let sync_every = Millis::from_ms(random.between(5, 200));
    Mode::Eager { most_unsynced: random.between(1, 12), sync_every }
}

/// Takes one safeguard away, from outside: by what is told to a tier or asked in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    None,
    /// A delta that goes out again gets a new number.
    NumbersChange,
    /// A delta counts in whatever window the store is in.
    SpansForgotten,
    /// What was not spent is given back twice, under two numbers.
    GivenBackTwice,
    /// A share may be spent for as long again.
    SharesOutlive,
    /// A share's time runs from when it arrived, not from when it was asked for.
    CountedFromArrival,
    /// More is spent than was granted.
    GrantsDouble,
    /// A node is further behind than it may be.
    UnsyncedUnbounded,
    /// A node's picture of the store's clock runs ahead.
    ClockAhead,
    /// A window that has not begun is taken for one that has.
    WindowsSeemBegun,
}

impl Sabotage {
    pub(crate) const ALL: [Self; 9] = [
        Self::NumbersChange,
        Self::SpansForgotten,
        Self::GivenBackTwice,
        Self::SharesOutlive,
        Self::CountedFromArrival,
        Self::GrantsDouble,
        Self::UnsyncedUnbounded,
        Self::ClockAhead,
        Self::WindowsSeemBegun,
    ];

    pub(crate) fn mode(self) -> fn(&mut Random) -> Mode {
        match self {
            Self::GivenBackTwice
            | Self::SharesOutlive
            | Self::CountedFromArrival
            | Self::GrantsDouble => lease,
            _ => eager,
        }
    }
}

/// What a seed makes of a fleet.
pub(crate) struct Plan {
    random: Random,
    mode: Mode,
    limits: Limits,
    nodes: usize,
    keys: u64,
    /// Of which a node remembers so many.
    most_keys: u32,
    calls: u64,
    lasts_us: u64,
    delay_us: u64,
    lost: u64,
    repeated: u64,
    troubles: u64,
    sabotage: Sabotage,
}

impl Plan {
    pub(crate) fn from(seed: u64, mode: fn(&mut Random) -> Mode, sabotage: Sabotage) -> Self {
        let mut random = Random::new(seed);
        let mode = mode(&mut random);
        let algorithm = random.pick(&[
            Algorithm::LeakyBucket,
            Algorithm::FixedWindow,
            Algorithm::SlidingWindow,
        ]);
        let limit = random.pick(&[1, 5, 16, 40, 100, 1_000]);
        let window = Millis::from_ms(random.pick(&[70, 500, 1_000, 3_000, 60_000]));
        let options = LimitOptions { algorithm, ..LimitOptions::new(limit, window) };
        let faulty = random.chance(70);
        let rare = |random: &mut Random, most| if faulty { random.between(0, most) } else { 0 };
        Self {
            mode,
            limits: Limits::new(vec![Limit::new(&options).unwrap()]).unwrap(),
            nodes: random.between(1, 8) as usize,
            keys: random.between(1, 3),
            most_keys: 1_000,
            calls: random.between(50, 400),
            lasts_us: random.pick(&[100_000, 1_000_000, 5_000_000]),
            delay_us: random.pick(&[500, 5_000, 100_000]),
            lost: rare(&mut random, 10),
            repeated: rare(&mut random, 10),
            troubles: rare(&mut random, 4),
            sabotage,
            random,
        }
    }

    /// One node that has room for one key, and is asked about several on slow ways.
    pub(crate) fn crowded(mut self) -> Self {
        (self.nodes, self.keys, self.most_keys) = (1, 2, 1);
        (self.calls, self.lasts_us, self.delay_us) = (400, 1_000_000, 100_000);
        self
    }

    fn is_quiet(&self) -> bool {
        self.lost + self.repeated + self.troubles == 0
    }

    fn shape(&self) -> Shape {
        *self.limits.first().unwrap().shape()
    }
}

#[derive(Clone, Debug)]
enum Event {
    Call { node: usize, key: String, cost: u64 },
    Arrive { node: usize, message: u64, key: String, question: Question, number: u64 },
    Answer { node: usize, message: u64, answer: Option<Answer> },
    Deadline { node: usize, message: u64 },
    Pump { node: usize },
    Store { up: bool },
    ClockSet { ahead_us: i64 },
    Pause { node: usize, us: u64 },
    Kill { node: usize },
    Block { key: String, us: u64 },
}

/// What the shared store answered, and when by the clock that judges.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Tells it from others.
    number: u64,
    share: Option<Share>,
    /// The share's window, apart from one of the same name before the clock was set back.
    span: u64,
    at_ms: u64,
    /// When the share's window is over.
    ends_us: u64,
}

/// A question under way.
struct Flight {
    ask: Ask,
    key: String,
    sent_us: u64,
    /// Whether a client waits for the decision.
    called: bool,
}

struct Node {
    tier: Tier,
    limiter: u32,
    slots: HashMap<String, Slot>,
    flights: HashMap<u64, Flight>,
    waiting: HashMap<String, Vec<u64>>,
    /// The window that a mirror is of.
    spans: HashMap<String, u64>,
    offset_us: u64,
    paused_until: u64,
    pump_at: Option<u64>,
    alive: bool,
}

pub(crate) struct World {
    plan: Plan,
    now_us: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    scheduled: HashMap<u64, Event>,
    count: u64,
    nodes: Vec<Node>,
    store: HashMap<String, (String, u64)>,
    store_is_up: bool,
    clock_us: i64,
    first_clock_us: u64,
    /// How far the store's clock was set ahead in all.
    skipped_us: u64,
    times_set_back: u64,
    clock_was_set: bool,
    /// From when until when keys were blocked.
    blocks: HashMap<String, Vec<(u64, u64)>>,
    audit: Audit,
}

impl World {
    pub(crate) fn new(mut plan: Plan) -> Self {
        let mut mode = plan.mode;
        if let (Sabotage::UnsyncedUnbounded, Mode::Eager { most_unsynced, .. }) =
            (plan.sabotage, &mut mode)
        {
            *most_unsynced *= 4;
        }
        let nodes = (0..plan.nodes)
            .map(|number| {
                let mut tier = Tier::new(mode, Clock::Store, plan.most_keys);
                let limiter = tier.register(plan.limits.clone(), number as u64);
                Node {
                    tier,
                    limiter,
                    slots: HashMap::new(),
                    flights: HashMap::new(),
                    waiting: HashMap::new(),
                    spans: HashMap::new(),
                    offset_us: plan.random.between(0, 10_000_000_000),
                    paused_until: 0,
                    pump_at: None,
                    alive: true,
                }
            })
            .collect();
        let first_clock_us = plan.random.between(10_000_000, 100_000_000);
        let mut world = Self {
            plan,
            now_us: 0,
            events: BinaryHeap::new(),
            scheduled: HashMap::new(),
            count: 0,
            nodes,
            store: HashMap::new(),
            store_is_up: true,
            clock_us: first_clock_us as i64,
            first_clock_us,
            skipped_us: 0,
            times_set_back: 0,
            clock_was_set: false,
            blocks: HashMap::new(),
            audit: Audit::default(),
        };
        world.schedule_calls();
        world.schedule_troubles();
        world
    }

    fn schedule_calls(&mut self) {
        for _ in 0..self.plan.calls {
            let at = self.plan.random.between(0, self.plan.lasts_us);
            let node = self.plan.random.between(0, self.plan.nodes as u64 - 1) as usize;
            // One key is hotter than the others.
            let key = if self.plan.random.chance(60) { 0 } else { self.plan.random.next() };
            let key = format!("key {}", key % self.plan.keys);
            let cost = if self.plan.random.chance(80) { 1 } else { self.plan.random.between(1, 8) };
            self.at(at, Event::Call { node, key, cost });
        }
    }

    fn schedule_troubles(&mut self) {
        // The onlooker's windows are aligned to a clock that nobody sets.
        let kinds = if matches!(self.plan.shape(), Shape::Sliding(_)) { 3 } else { 4 };
        for _ in 0..self.plan.troubles {
            let at = self.plan.random.between(0, self.plan.lasts_us);
            let node = self.plan.random.between(0, self.plan.nodes as u64 - 1) as usize;
            // Whole milliseconds, so that a clock that is set still ticks when the onlooker's does.
            let us = self.plan.random.between(1, 2_000) * 1_000;
            match self.plan.random.between(0, kinds) {
                0 => {
                    self.at(at, Event::Store { up: false });
                    self.at(at + us, Event::Store { up: true });
                }
                4 => {
                    let back = self.plan.random.chance(50);
                    let ahead_us = if back { -(us as i64) } else { us as i64 };
                    self.at(at, Event::ClockSet { ahead_us });
                }
                1 => self.at(at, Event::Pause { node, us }),
                2 => self.at(at, Event::Kill { node }),
                _ => self.at(at, Event::Block { key: "key 0".into(), us: 2 * us }),
            }
        }
    }

    fn at(&mut self, at_us: u64, event: Event) {
        self.count += 1;
        self.scheduled.insert(self.count, event);
        self.events.push(Reverse((at_us, self.count)));
    }

    pub(crate) fn run(mut self) {
        self.events_until_none();
        self.settle();
        let shape = self.plan.shape();
        self.audit.adds_up(self.now_us, self.clock_was_set, |node| self.nodes[node].alive);
        let bound = over_admission_bound(self.plan.mode, &shape, self.plan.nodes as u64);
        self.audit.within(&shape, bound, self.clock_was_set);
    }

    fn events_until_none(&mut self) {
        while let Some(Reverse((at_us, number))) = self.events.pop() {
            self.now_us = self.now_us.max(at_us);
            let event = self.scheduled.remove(&number).unwrap();
            self.happen(event);
        }
    }

    /// At the end every node that lives closes, on a network without faults.
    fn settle(&mut self) {
        (self.plan.lost, self.plan.repeated, self.store_is_up) = (0, 0, true);
        for node in 0..self.nodes.len() {
            while self.nodes[node].alive {
                let Some(slot) = self.nodes[node].tier.unsettled(None) else { break };
                self.settle_row(node, slot);
            }
        }
    }

    fn settle_row(&mut self, node: usize, slot: Slot) {
        loop {
            let now = self.local(node);
            let Some(ask) = self.nodes[node].tier.settle(slot, now) else { return };
            let key = self.key_of(node, slot);
            self.send(node, ask, key, false);
            self.events_until_none();
        }
    }

    fn key_of(&self, node: usize, slot: Slot) -> String {
        let known = self.nodes[node].slots.iter().find(|(_, known)| known.index == slot.index);
        known.map(|(key, _)| key.clone()).unwrap()
    }

    fn happen(&mut self, event: Event) {
        let node = match event {
            Event::Call { node, .. }
            | Event::Answer { node, .. }
            | Event::Deadline { node, .. }
            | Event::Pump { node } => Some(node),
            _ => None,
        };
        if let Some(node) = node {
            if !self.nodes[node].alive {
                return;
            }
            let until = self.nodes[node].paused_until;
            if self.now_us < until {
                return self.at(until, event);
            }
        }
        match event {
            Event::Call { node, key, cost } => self.call(node, &key, cost),
            Event::Arrive { node, message, key, question, number } => {
                self.arrive(node, message, &key, question, number);
            }
            Event::Answer { node, message, answer } => self.answer(node, message, answer),
            Event::Deadline { node, message } => self.fail(node, message),
            Event::Pump { node } => self.pump(node),
            Event::Store { up } => self.store_is_up = up,
            Event::ClockSet { ahead_us } => {
                self.clock_us += ahead_us;
                self.clock_was_set = true;
                self.times_set_back += u64::from(ahead_us < 0);
                self.skipped_us += u64::try_from(ahead_us).unwrap_or(0);
            }
            Event::Pause { node, us } => self.nodes[node].paused_until = self.now_us + us,
            Event::Kill { node } => self.nodes[node].alive = false,
            Event::Block { key, us } => self.block(&key, us),
        }
    }

    // ── clocks ──────────────────────────────────────────────────────────────

    fn local(&self, node: usize) -> Timestamp {
        Timestamp::from_ms((self.now_us + self.nodes[node].offset_us) / 1_000)
    }

    fn store_clock(&self) -> Timestamp {
        let us = self.now_us as i64 + self.clock_us;
        Timestamp::from_ms(EPOCH_MS + us.max(0) as u64 / 1_000)
    }

    /// The store's clock had it never been set back: no less has leaked by it.
    fn judged_ms(&self) -> u64 {
        EPOCH_MS + (self.first_clock_us + self.now_us + self.skipped_us) / 1_000
    }

    // ── nodes ───────────────────────────────────────────────────────────────

    fn call(&mut self, node: usize, key: &str, cost: u64) {
        let now = self.local(node);
        let Node { tier, limiter, slots, .. } = &mut self.nodes[node];
        let slot = slots.get(key).copied();
        if let Some((decision, ahead)) =
            slot.and_then(|slot| tier.decide(*limiter, slot, cost, now))
        {
            if decision.allowed() {
                self.admitted_here(node, key, cost);
            } else {
                self.denied_here(key, cost, decision.retry_after);
            }
            if let Some(ask) = ahead {
                self.send(node, ask, key.into(), false);
            }
            return self.pump(node);
        }
        let (verdict, slot) = tier.ask(*limiter, slot, cost, now);
        while let Some(freed) = tier.freed() {
            slots.retain(|_, slot| slot.index != freed);
        }
        if let Some(slot) = slot {
            slots.insert(key.into(), slot);
        }
        match verdict {
            Verdict::Ask(ask) => return self.send(node, ask, key.into(), true),
            Verdict::AskFirst(ask) => self.send(node, ask, key.into(), false),
            Verdict::Wait => {}
        }
        self.nodes[node].waiting.entry(key.into()).or_default().push(cost);
    }

    fn admitted_here(&mut self, node: usize, key: &str, units: u64) {
        let at_ms = self.judged_ms();
        if matches!(self.plan.mode, Mode::Eager { .. }) {
            let span = self.nodes[node].spans[key];
            self.audit.ahead(node, key, Admission { at_ms, units, span });
        } else {
            self.audit.spent(node, key, units, at_ms, self.now_us);
            // Whoever holds a share hears of a block in time.
            let trusted_us = 1_000 * TRUSTED_FOR.as_ms();
            let late =
                |(from, until): &(u64, u64)| (from + trusted_us..*until).contains(&self.now_us);
            let blocked = self.blocks.get(key).and_then(|blocks| blocks.iter().find(|b| late(b)));
            assert!(
                blocked.is_none() || self.clock_was_set,
                "node {node} spends {key} at {}, blocked {blocked:?}",
                self.now_us
            );
        }
    }

    /// Somebody else blocks a key.
    fn block(&mut self, key: &str, us: u64) {
        let duration = Millis::from_ms(us / 1_000);
        let (_, write) = self.step_of(key, &Op::Block { duration });
        self.write(key, write);
        let blocks = self.blocks.entry(key.into()).or_default();
        // The last one counts.
        for (_, until) in blocks.iter_mut() {
            *until = self.now_us.min(*until);
        }
        blocks.push((self.now_us, self.now_us + us - 1_000));
    }

    /// What a node alone repeats of a denial is what the store would say, but for as long as its answer took,
    /// and where no other call is under way that may have been admitted meanwhile.
    fn denied_here(&self, key: &str, cost: u64, told: Option<Millis>) {
        let mut flights = self.nodes.iter().flat_map(|node| node.flights.values());
        let alone = self.plan.nodes == 1 && self.plan.is_quiet();
        if !alone || flights.any(|flight| flight.key == key) || self.plan.mode != Mode::DenyCache {
            return;
        }
        let Reply::Share(share) = self.step(key, Question::Consume { cost }).0 else {
            return;
        };
        let truth = share.decision.retry_after;
        let off = told.map(Millis::as_ms).zip(truth.map(Millis::as_ms));
        let is_near =
            off.is_none_or(|(told, truth)| told.abs_diff(truth) <= self.plan.delay_us / 1_000 + 2);
        assert!(is_near && told.is_some() == truth.is_some(), "{told:?}, but {truth:?}");
    }

    fn pump(&mut self, node: usize) {
        let now = self.local(node);
        while let Some(ask) = self.nodes[node].tier.due(now) {
            let key = self.key_of(node, ask.slot.unwrap());
            self.send(node, ask, key, false);
        }
        let Some(due) = self.nodes[node].tier.due_at() else { return };
        let at_us = due.as_ms() * 1_000 - self.nodes[node].offset_us.min(due.as_ms() * 1_000);
        let at_us = at_us.max(self.now_us) + 1_000;
        if self.nodes[node].pump_at.is_none_or(|planned| planned <= self.now_us || planned > at_us)
        {
            self.nodes[node].pump_at = Some(at_us);
            self.at(at_us, Event::Pump { node });
        }
    }

    // ── network ─────────────────────────────────────────────────────────────

    fn send(&mut self, node: usize, ask: Ask, key: String, called: bool) {
        self.count += 1;
        let message = self.count;
        let mut question = ask.question;
        let number = match &mut question {
            Question::Add { delta: Some(delta), .. } => {
                self.audit.sent(node, &key, delta.seq, delta.units);
                self.number_of(delta)
            }
            Question::GiveBack { delta } => {
                self.audit.returned(node, &key, delta.units, delta.span.as_ms(), self.now_us);
                self.number_of(delta)
            }
            _ => 0,
        };
        self.nodes[node]
            .flights
            .insert(message, Flight { ask, key: key.clone(), sent_us: self.now_us, called });
        self.at(self.now_us + DEADLINE_US, Event::Deadline { node, message });
        self.deliver(
            |key, question| Event::Arrive { node, message, key, question, number },
            &key,
            question,
        );
        if self.plan.sabotage == Sabotage::GivenBackTwice
            && let Question::GiveBack { delta } = question
        {
            let question = Question::GiveBack { delta: Delta { seq: self.count << 20, ..delta } };
            self.deliver(
                |key, question| Event::Arrive { node, message, key, question, number },
                &key,
                question,
            );
        }
    }

    /// The number that a delta had before anybody meddled with it.
    fn number_of(&mut self, delta: &mut Delta) -> u64 {
        let number = delta.seq;
        if self.plan.sabotage == Sabotage::NumbersChange {
            delta.seq = self.count << 20;
        }
        number
    }

    /// Puts a message on its way: it arrives once, not at all, or twice, each after a delay of its own.
    fn deliver(
        &mut self,
        event: impl Fn(String, Question) -> Event,
        key: &str,
        question: Question,
    ) {
        for delay in self.delays() {
            self.at(self.now_us + delay, event(key.into(), question));
        }
    }

    fn delays(&mut self) -> Vec<u64> {
        let Plan { random, lost, repeated, delay_us, .. } = &mut self.plan;
        let mut copies = u64::from(!random.chance(*lost));
        if random.chance(*repeated) {
            copies += 1;
        }
        let slow = random.chance(*lost);
        let most = if slow { 3 * DEADLINE_US } else { *delay_us };
        (0..copies).map(|_| random.between(1, most)).collect()
    }

    fn answer(&mut self, node: usize, message: u64, answer: Option<Answer>) {
        let Some(flight) = self.nodes[node].flights.remove(&message) else { return };
        match answer {
            None => self.nodes[node].tier.failed(&flight.ask),
            Some(Answer { share: None, .. }) => self.nodes[node].tier.given_back(&flight.ask),
            Some(answer @ Answer { share: Some(share), .. }) => {
                self.onlooker_hears(node, &flight, &share, answer);
                let now = self.local(node);
                let share = self.told(share, answer.at_ms);
                let tier = &mut self.nodes[node].tier;
                match flight.ask.question {
                    Question::Consume { .. } => tier.decided(&flight.ask, &share.decision, now),
                    _ => tier.shared(&flight.ask, &share, now),
                }
            }
        }
        self.wake(node, &flight.key);
    }

    /// What the answer that arrives makes of the units.
    fn onlooker_hears(&mut self, node: usize, flight: &Flight, share: &Share, answer: Answer) {
        let Answer { number, span, at_ms, ends_us, .. } = answer;
        self.audit.heard(number);
        if flight.called && share.decision.allowed() {
            let units = cost_of(&flight.ask.question);
            self.audit.admitted(&flight.key, Admission { at_ms, units, span });
        }
        if share.granted > 0 {
            let kept_until_us = self.kept_until_us(node, flight.sent_us, share.holds_for);
            let grant = Grant { units: share.granted, span, ends_us, kept_until_us };
            self.audit.granted(node, &flight.key, grant);
        }
        self.nodes[node].spans.insert(flight.key.clone(), span);
    }

    /// Until when a node may keep a share, by its own clock: as if it had been charged as it was asked for.
    fn kept_until_us(&self, node: usize, sent_us: u64, holds_for: Millis) -> u64 {
        let offset_us = self.nodes[node].offset_us;
        let sent_ms = (sent_us + offset_us) / 1_000;
        ((sent_ms + holds_for.as_ms().saturating_sub(1)) * 1_000).saturating_sub(offset_us)
    }

    /// What a tier is told, which is the truth unless somebody meddles.
    fn told(&self, mut share: Share, at_ms: u64) -> Share {
        let holds_ms = share.holds_for.as_ms();
        match self.plan.sabotage {
            Sabotage::SharesOutlive => share.holds_for = Millis::from_ms(holds_ms * 2),
            Sabotage::CountedFromArrival => {
                let late_ms = self.judged_ms() - at_ms;
                share.holds_for = Millis::from_ms(holds_ms + 2 * late_ms);
            }
            Sabotage::GrantsDouble => share.granted *= 2,
            Sabotage::WindowsSeemBegun => share.state.level = share.state.level.max(1),
            Sabotage::ClockAhead => share.now = share.now.plus(Millis::from_ms(300)),
            _ => {}
        }
        share
    }

    fn fail(&mut self, node: usize, message: u64) {
        let Some(Flight { ask, key, .. }) = self.nodes[node].flights.remove(&message) else {
            return;
        };
        self.nodes[node].tier.failed(&ask);
        self.wake(node, &key);
    }

    fn wake(&mut self, node: usize, key: &str) {
        for cost in self.nodes[node].waiting.remove(key).unwrap_or_default() {
            self.call(node, key, cost);
        }
        self.pump(node);
    }

    // ── the shared store ────────────────────────────────────────────────────

    fn arrive(&mut self, node: usize, message: u64, key: &str, question: Question, number: u64) {
        let answer = self.store_is_up.then(|| self.execute(node, key, question, number));
        for delay in self.delays() {
            self.at(self.now_us + delay, Event::Answer { node, message, answer });
        }
    }

    fn execute(&mut self, node: usize, key: &str, mut question: Question, number: u64) -> Answer {
        let now = self.store_clock();
        if self.plan.sabotage == Sabotage::SpansForgotten
            && let Question::Add { delta: Some(delta), .. } = &mut question
        {
            delta.span = now;
        }
        self.watch(node, key, question, number);
        let (reply, write) = self.step(key, question);
        self.write(key, write);
        self.count += 1;
        let (number, at_ms) = (self.count, self.judged_ms());
        let Reply::Share(share) = reply else {
            return Answer { number, share: None, span: 0, at_ms, ends_us: 0 };
        };
        let admitted = if share.decision.allowed() { cost_of(&question) } else { 0 };
        self.audit.charged(key, number, admitted + share.granted);
        if matches!(self.plan.shape(), Shape::Fixed(_)) && share.state.level > 0 {
            self.audit.begun(key, share.span.as_ms());
        }
        let into_ms_us = (self.now_us + self.first_clock_us) % 1_000;
        let ends_us = self.now_us - into_ms_us.min(self.now_us)
            + 1_000 * self.left_of(share.span.as_ms(), now.as_ms());
        let span = share.span.as_ms() + self.times_set_back * SET_BACK;
        Answer { number, share: Some(share), span, at_ms, ends_us }
    }

    /// How much of a window is left; of a bucket, until all has leaked that can be charged.
    fn left_of(&self, span_ms: u64, now_ms: u64) -> u64 {
        match self.plan.shape() {
            Shape::Bucket(bucket) => (bucket.burst() * bucket.window_ms()).div_ceil(bucket.rate()),
            Shape::Fixed(fixed) => (span_ms + fixed.window_ms()).saturating_sub(now_ms),
            Shape::Sliding(sliding) => (span_ms + sliding.window_ms()).saturating_sub(now_ms),
        }
    }

    fn write(&mut self, key: &str, write: Write) {
        match write {
            Write::Keep => {}
            Write::Delete => drop(self.store.remove(key)),
            Write::Put(record, ttl) => {
                let text = op::encode(&record).expect("a record that fits");
                self.store.insert(key.into(), (text, self.store_clock().plus(ttl).as_ms()));
            }
        }
    }

    fn step(&self, key: &str, question: Question) -> (Reply, Write) {
        // The tiers of one mode need only the decision; the window of it is the audit's.
        let op = match question {
            Question::Consume { cost } => Op::Reserve { limits: &self.plan.limits, cost, units: 0 },
            _ => question.op(&self.plan.limits),
        };
        self.step_of(key, &op)
    }

    fn step_of(&self, key: &str, op: &Op<'_>) -> (Reply, Write) {
        let now = self.store_clock();
        // What is over may be there still, or not.
        let kept = self
            .store
            .get(key)
            .filter(|(_, until)| now.as_ms() < *until || now.as_ms().is_multiple_of(2));
        let record = kept.map(|(text, _)| op::decode(text).expect("what was written"));
        op::step(record, op, now, Clock::Store).expect("an operation of ours")
    }

    /// Looks what a delta is going to do: it counts once, if its window is still open, and never again.
    fn watch(&mut self, node: usize, key: &str, question: Question, number: u64) {
        let delta = match question {
            Question::Add { delta: Some(delta), .. } | Question::GiveBack { delta } => delta,
            _ => return,
        };
        let state = |question| match self.step(key, question).0 {
            Reply::Share(share) => share.state,
            other => panic!("{other:?}"),
        };
        let before = state(Question::Add { delta: None, cost: 0 });
        let after = if matches!(question, Question::GiveBack { .. }) {
            let Write::Put(op::Record::Limits(record), _) = self.step(key, question).1 else {
                return;
            };
            record.entries.first().map_or(before, |entry| entry.state)
        } else {
            state(Question::Add { delta: Some(delta), cost: 0 })
        };
        if before != after {
            let is_new = self.audit.counted(key, node as u64, number, self.times_set_back);
            if is_new && matches!(question, Question::Add { .. }) {
                self.audit.added(key, delta.units);
            }
        } else if matches!(question, Question::Add { .. }) {
            self.dropped(node, key, number);
        }
    }

    /// A delta counted nothing. Where a clock was set nobody knows whether its window is over.
    fn dropped(&mut self, node: usize, key: &str, number: u64) {
        let (now_ms, clock_was_set) = (self.judged_ms(), self.clock_was_set);
        let shape = self.plan.shape();
        let (window_ms, is_over): (u64, Box<dyn Fn(u64) -> bool>) = match shape {
            Shape::Bucket(_) => (0, Box::new(move |at| now_ms > at + 60_000)),
            Shape::Fixed(fixed) => {
                (fixed.window_ms(), Box::new(move |began| now_ms >= began + fixed.window_ms()))
            }
            Shape::Sliding(sliding) => {
                let window = sliding.window_ms();
                (0, Box::new(move |at| now_ms / window > at / window + 1))
            }
        };
        self.audit.late((node, key), number, window_ms, |began| clock_was_set || is_over(began));
    }
}

const fn cost_of(question: &Question) -> u64 {
    match *question {
        Question::Consume { cost }
        | Question::Reserve { cost, .. }
        | Question::Add { cost, .. } => cost,
        Question::GiveBack { .. } => 0,
    }
}
