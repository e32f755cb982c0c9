//! Two tiers: what this process remembers of a shared store, so that it need not be asked about
//! everything. Each mode is a file, and has a bound that is a number ([`over_admission_bound`]).
//!
//! A [`Tier`] is synchronous and has no clock. It answers, or says what to ask the shared store; whoever
//! carries the question tells it what came of that. Its times are the process's own monotonic ones, never
//! the shared store's, and are compared in the direction that admits less.

mod denial;
mod eager;
mod lease;
mod seen;
mod strays;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use self::denial::Denials;
use self::eager::Mirror;
use self::lease::Lease;
pub use self::seen::{Seen, SeenAsk};
use self::strays::{Stray, Strays};
use super::records::Records;
use super::slots::{Full, Slot};
use crate::limit::{Decision, Delta, Limit, Limits, Reason, Shape, Share};
use crate::op::Op;
use crate::time::{Clock, Millis, Timestamp};

/// How long what the shared store said is believed, where another node may have changed it since.
pub const TRUSTED_FOR: Millis = Millis::from_ms(1_000);

/// Both clocks count whole milliseconds, and the one that is read may be about to end.
const TICK: Millis = Millis::from_ms(1);

/// How long a share lies unused before it goes back.
const IDLE: Millis = Millis::from_ms(2_000);

/// What a process decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Repeats of a denial.
    DenyCache,
    /// What fits the share that it holds: at most so many units, and an eighth of the capacity.
    Lease(u64),
    /// Everything, as long as no more units than that are unknown to the shared store.
    Eager {
        /// The most units of a key that the shared store does not know of.
        most_unsynced: u64,
        /// How long it may take until it does.
        sync_every: Millis,
    },
}

/// The most units that so many nodes can admit above a limit in one of its windows.
///
/// `DenyCache`: none, since the shared store decides on everything that is admitted. `Lease`: every unit
/// is charged before it is spent. In windows it is spent in the window it was charged in, so none; a
/// bucket leaks meanwhile, so that beside a full bucket every node may still spend its share. `Eager`: a
/// node that admits has seen everything but what the other nodes have not told yet.
#[must_use]
pub const fn over_admission_bound(mode: Mode, shape: &Shape, nodes: u64) -> u64 {
    match (mode, shape) {
        (Mode::Lease(most), Shape::Bucket(_)) => {
            nodes.saturating_mul(lease::largest(most, shape.capacity()))
        }
        (Mode::DenyCache | Mode::Lease(_), _) => 0,
        (Mode::Eager { most_unsynced, .. }, _) => {
            nodes.saturating_sub(1).saturating_mul(most_unsynced)
        }
    }
}

/// What to do about a call that cannot be decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The shared store is to be asked; its decision on the cost is the call's.
    Ask(Ask),
    /// It is to be asked this first; then the call is to be made again.
    AskFirst(Ask),
    /// It is being asked about this key; then the call is to be made again.
    Wait,
}

/// A question to the shared store. What comes of it has to be told to the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The question.
    pub question: Question,
    /// Whose limits it is about.
    pub limiter: u32,
    /// The key's row; none when the table is full.
    pub slot: Option<Slot>,
    sent: Timestamp,
    changes: u32,
    resets: u32,
    /// Its own number, of one that decides without a row.
    stray: Option<Stray>,
    /// One of those may be about this key too, and charge what the answer to this does not show.
    beside_stray: bool,
}

impl Ask {
    /// When something that held for `span` as the store decided is over for certain not yet.
    fn holds_until(&self, span: Millis) -> Timestamp {
        self.sent.plus(span.minus(TICK))
    }

    fn new(
        question: Question,
        limiter: u32,
        row: Option<(&mut Row, Slot)>,
        now: Timestamp,
    ) -> Self {
        let mut ask = Self {
            question,
            limiter,
            slot: None,
            sent: now,
            changes: 0,
            resets: 0,
            stray: None,
            beside_stray: false,
        };
        if let Some((row, slot)) = row {
            row.asked = row.asked.saturating_add(1);
            (ask.slot, ask.changes, ask.resets) = (Some(slot), row.changes, row.resets);
        }
        ask
    }
}

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// To decide.
    Consume {
        /// Units.
        cost: u64,
    },
    /// To decide, and for a share.
    Reserve {
        /// Units.
        cost: u64,
        /// The largest share.
        units: u64,
    },
    /// To count what was admitted here, and to decide.
    Add {
        /// What was admitted.
        delta: Option<Delta>,
        /// Units.
        cost: u64,
    },
    /// To take back what was not spent.
    GiveBack {
        /// What was not spent.
        delta: Delta,
    },
}

impl Question {
    /// The operation that asks it.
    #[must_use]
    pub const fn op<'a>(&self, limits: &'a Limits) -> Op<'a> {
        match *self {
            Self::Consume { cost } => Op::Consume { limits, cost },
            Self::Reserve { cost, units } => Op::Reserve { limits, cost, units },
            Self::Add { delta, cost } => Op::Add { limits, delta, cost },
            Self::GiveBack { delta } => Op::GiveBack { limits, delta },
        }
    }

    const fn cost(&self) -> u64 {
        match *self {
            Self::Consume { cost } | Self::Reserve { cost, .. } | Self::Add { cost, .. } => cost,
            Self::GiveBack { .. } => 0,
        }
    }
}

/// What is remembered of one key of one Limiter.
#[derive(Clone, Debug, Default)]
struct Row {
    limiter: u32,
    /// Questions under way: the row stays as long as there are any.
    asked: u32,
    /// This node's own changes of the key: an answer from before the last one is not remembered.
    changes: u32,
    /// Those of them that make a share worthless.
    resets: u32,
    denials: Denials,
    lease: Lease,
    mirror: Mirror,
    /// It stands in the queue of what has to be done.
    queued: bool,
    /// What decided without a row before this one was made may be about its key.
    made: Stray,
}

impl Row {
    /// What was denied has to wait for these units too.
    fn charged(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        self.denials.forget();
    }

    fn over_at(&self) -> Timestamp {
        if self.asked > 0 {
            return Timestamp::from_ms(u64::MAX);
        }
        let denied_until = self.denials.until();
        denied_until.max(self.lease.over_at()).max(self.mirror.over_at())
    }
}

struct Registered {
    limits: Limits,
    node: u64,
    seq: u64,
}

impl Registered {
    fn limit(&self) -> Option<&Limit> {
        self.limits.first()
    }
}

/// The first tier: rows by slot, as the memory table has them.
pub struct Tier {
    mode: Mode,
    /// Whose clock decides in the shared store.
    clock: Clock,
    /// By number. That of one which was released is given to another.
    limiters: Vec<Option<Registered>>,
    released: Vec<u32>,
    rows: Records<Row>,
    due: VecDeque<(Timestamp, Slot)>,
    strays: Strays,
}

impl Tier {
    /// A tier that remembers at most so many keys. Beyond them the shared store decides.
    #[must_use]
    pub fn new(mode: Mode, clock: Clock, most_keys: u32) -> Self {
        Self {
            mode,
            clock,
            limiters: Vec::new(),
            released: Vec::new(),
            rows: Records::new(most_keys),
            due: VecDeque::new(),
            strays: Strays::default(),
        }
    }

    /// Makes a Limiter's limits known. `node` is nobody else's: deltas are counted once by it.
    pub fn register(&mut self, limits: Limits, node: u64) -> u32 {
        let number = self.released.pop().unwrap_or_else(|| {
            self.limiters.push(None);
            u32::try_from(self.limiters.len().saturating_sub(1)).unwrap_or(u32::MAX)
        });
        if let Some(place) = self.limiters.get_mut(number as usize) {
            *place = Some(Registered { limits, node, seq: 0 });
        }
        number
    }

    /// Forgets a Limiter that is closed, once all of its keys are forgotten.
    pub fn release(&mut self, limiter: u32) {
        let known = self.limiters.get_mut(limiter as usize).and_then(Option::take);
        if known.is_some() {
            self.released.push(limiter);
        }
    }

    /// Forgets a key of a Limiter that is closed.
    pub fn forget(&mut self, slot: Slot) {
        self.rows.remove(slot);
    }

    /// A registered Limiter.
    fn registered(&self, limiter: u32) -> Option<&Registered> {
        self.limiters.get(limiter as usize)?.as_ref()
    }

    /// Decides without the shared store, if that can be; and what to ask meanwhile, ahead of need.
    pub fn decide(
        &mut self,
        limiter: u32,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<(Decision, Option<Ask>)> {
        let slot = self.rows.place(slot)?;
        let decision = self.decide_here(limiter, slot, cost, now)?;
        Some((decision, self.ask_ahead(limiter, slot, now)))
    }

    /// What to ask for a call that cannot be decided here; answers the key's row.
    pub fn ask(
        &mut self,
        limiter: u32,
        slot: Option<Slot>,
        cost: u64,
        now: Timestamp,
    ) -> (Verdict, Option<Slot>) {
        let slot = self.row_for(limiter, slot, now);
        (self.question(limiter, slot, cost, now), slot)
    }

    /// What can be decided here.
    fn decide_here(
        &mut self,
        limiter: u32,
        slot: Slot,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        let mode = self.mode;
        let limit = self.limiters.get(limiter as usize)?.as_ref()?.limit()?;
        let row = self.rows.get_mut(slot)?;
        if let Some(decision) = row.denials.answer(cost, now) {
            return Some(decision);
        }
        match mode {
            Mode::DenyCache => None,
            Mode::Lease(_) => row.lease.spend(limit, cost, now),
            Mode::Eager { most_unsynced, sync_every } => {
                let decision = row.mirror.consume(limit, cost, most_unsynced, now, self.clock)?;
                if row.mirror.is_dirty() && !row.queued {
                    row.queued = true;
                    self.due.push_back((now.plus(sync_every), slot));
                }
                Some(decision)
            }
        }
    }

    /// Asks for a share before the one that is held is spent.
    fn ask_ahead(&mut self, limiter: u32, slot: Slot, now: Timestamp) -> Option<Ask> {
        let Mode::Lease(most) = self.mode else {
            return None;
        };
        let capacity = self.registered(limiter)?.limit()?.capacity();
        let lease = &self.rows.get(slot)?.lease;
        let wants_more = lease.wants_more(lease::largest(most, capacity), now);
        if wants_more { asked(self.question(limiter, Some(slot), 0, now)) } else { None }
    }

    /// The key's row, made if there is room for one.
    fn row_for(&mut self, limiter: u32, slot: Option<Slot>, now: Timestamp) -> Option<Slot> {
        if let Some(slot) = slot.and_then(|slot| self.rows.place(slot)) {
            return Some(slot);
        }
        let row = Row { limiter, made: self.strays.next(), ..Row::default() };
        let placed: Result<_, Full> = self.rows.put(None, Some(row), now, now, Row::over_at);
        placed.ok().flatten()
    }

    fn question(&mut self, limiter: u32, slot: Option<Slot>, cost: u64, now: Timestamp) -> Verdict {
        let mode = self.mode;
        let row = slot.and_then(|slot| self.rows.get_mut(slot)).zip(slot);
        let registered = self.limiters.get_mut(limiter as usize).and_then(Option::as_mut);
        let ask = |question, row| Ask::new(question, limiter, row, now);
        match (mode, row.zip(registered)) {
            (Mode::DenyCache, row) => {
                Verdict::Ask(ask(Question::Consume { cost }, row.map(|(row, _)| row)))
            }
            (Mode::Lease(_), None) => Verdict::Ask(ask(Question::Reserve { cost, units: 0 }, None)),
            (Mode::Eager { .. }, None) => {
                let ask = ask(Question::Add { delta: None, cost }, None);
                Verdict::Ask(Ask { stray: Some(self.strays.begin()), ..ask })
            }
            (Mode::Lease(most), Some(((row, slot), registered))) => {
                let capacity = registered.limit().map_or(0, Limit::capacity);
                let units = row.lease.ask(lease::largest(most, capacity), cost, now);
                Verdict::Ask(ask(Question::Reserve { cost, units }, Some((row, slot))))
            }
            (Mode::Eager { .. }, Some(((row, _), _))) if row.mirror.is_busy() => Verdict::Wait,
            (Mode::Eager { .. }, Some(((row, slot), registered))) => {
                // The shared store may decide only when it knows of all that was admitted here.
                let first = cost > 0 && row.mirror.needs_two_questions();
                let cost = if first { 0 } else { cost };
                let delta = row.mirror.ask(registered.node, &mut registered.seq, cost);
                let beside_stray = self.strays.any_before(row.made);
                let ask = ask(Question::Add { delta, cost }, Some((row, slot)));
                let ask = Ask { beside_stray, ..ask };
                if first { Verdict::AskFirst(ask) } else { Verdict::Ask(ask) }
            }
        }
    }

    /// The shared store has decided.
    pub fn decided(&mut self, ask: &Ask, decision: &Decision, now: Timestamp) {
        self.told(ask, |row| {
            if decision.allowed() {
                row.charged();
            } else if row.changes == ask.changes {
                row.denials.note(ask, *decision, now);
            }
        });
    }

    /// The shared store has decided, and told what to decide by.
    pub fn shared(&mut self, ask: &Ask, share: &Share, now: Timestamp) {
        let (mode, clock) = (self.mode, self.clock);
        let limit = self.registered(ask.limiter).and_then(Registered::limit);
        let Some(shape) = limit.map(|limit| *limit.shape()) else {
            return self.failed(ask);
        };
        let denied = !share.decision.allowed();
        let charged = share.granted > 0 || !denied && ask.question.cost() > 0;
        let blocked = share.decision.reason == Reason::Blocked;
        self.told(ask, |row| {
            // A mirror tells by itself what does not fit; what it cannot show is a block.
            let remembers = if matches!(mode, Mode::Eager { .. }) { blocked } else { denied };
            let current = row.changes == ask.changes;
            if current && remembers {
                row.denials.note(ask, share.decision, now);
            }
            match mode {
                Mode::DenyCache => {}
                Mode::Lease(_) => {
                    row.lease.told(&shape, ask, share, row.resets == ask.resets, now);
                }
                Mode::Eager { .. } => {
                    let current = current && !blocked && !ask.beside_stray;
                    row.mirror.told(&shape, ask, share, current, now, clock);
                }
            }
            if charged {
                row.charged();
            }
        });
        if let Some(slot) = ask.slot
            && let Some(row) = self.rows.get_mut(slot)
            && row.lease.held() > 0
            && !row.queued
        {
            row.queued = true;
            self.due.push_back((now.plus(IDLE), slot));
        }
    }

    /// What was given back has been taken, or nobody knows.
    pub fn given_back(&mut self, ask: &Ask) {
        self.told(ask, |_| {});
    }

    /// The shared store did not answer, or not in time: nobody knows what it did.
    pub fn failed(&mut self, ask: &Ask) {
        self.told(ask, |row| {
            row.lease.failed(ask);
            row.mirror.failed();
        });
    }

    fn told(&mut self, ask: &Ask, change: impl FnOnce(&mut Row)) {
        if let Some(stray) = ask.stray {
            self.strays.end(stray);
        }
        let Some(slot) = ask.slot else {
            return;
        };
        self.rows.update(slot, Row::over_at, |row| {
            row.asked = row.asked.saturating_sub(1);
            change(row);
        });
    }

    /// This node gives units back in the shared store: to be called before that is asked for and once more
    /// when it is done. What was denied may fit.
    pub fn refunded(&mut self, slot: Slot) {
        self.rows.update(slot, Row::over_at, |row| {
            row.changes = row.changes.wrapping_add(1);
            row.denials.forget();
            row.mirror.forget();
        });
    }

    /// As [`refunded`](Self::refunded), of a block: a share that is held is not spent while it is in force.
    pub fn blocked(&mut self, slot: Slot, now: Timestamp) {
        self.refunded(slot);
        self.rows.update(slot, Row::over_at, |row| row.lease.doubt(now));
    }

    /// As [`refunded`](Self::refunded), of a reset: a share that is held is worth nothing either.
    pub fn reset(&mut self, slot: Slot) {
        self.refunded(slot);
        self.rows.update(slot, Row::over_at, |row| {
            row.resets = row.resets.wrapping_add(1);
            row.lease.forget();
        });
    }

    /// The next question that is due, if there is one: a share to renew or to give back, units to add.
    pub fn due(&mut self, now: Timestamp) -> Option<Ask> {
        while let Some((_, slot)) = self.due.front().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_front();
            if let Some(ask) = self.due_of(slot, now) {
                return Some(ask);
            }
        }
        None
    }

    /// When something will be due.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.due.front().map(|(at, _)| *at)
    }

    fn due_of(&mut self, slot: Slot, now: Timestamp) -> Option<Ask> {
        let mode = self.mode;
        let row = self.rows.get_mut(slot)?;
        let limiter = row.limiter;
        row.queued = false;
        match mode {
            Mode::DenyCache => None,
            Mode::Lease(_) => {
                if row.lease.is_idle(now) {
                    return self.settle(slot, now);
                }
                row.queued = row.lease.held() > 0;
                if row.queued {
                    self.due.push_back((now.plus(IDLE), slot));
                }
                None
            }
            Mode::Eager { sync_every, .. } => {
                // What counts nowhere any more is not told any more.
                if row.mirror.is_dirty() && !row.mirror.is_busy() && now >= row.mirror.over_at() {
                    row.mirror = Mirror::default();
                }
                row.queued = row.mirror.is_dirty();
                if !row.queued {
                    return None;
                }
                self.due.push_back((now.plus(sync_every), slot));
                asked(self.question(limiter, Some(slot), 0, now))
            }
        }
    }

    /// The next question that leaves nothing of the key here: units that the shared store does not know of
    /// are added, a share is given back.
    pub fn settle(&mut self, slot: Slot, now: Timestamp) -> Option<Ask> {
        let slot = self.rows.place(slot)?;
        let row = self.rows.get_mut(slot)?;
        let limiter = row.limiter;
        if row.mirror.is_dirty() {
            return asked(self.question(limiter, Some(slot), 0, now));
        }
        let registered = self.limiters.get_mut(limiter as usize)?.as_mut()?;
        let (units, span) = row.lease.give_back(now)?;
        registered.seq = registered.seq.saturating_add(1);
        let delta = Delta { node: registered.node, seq: registered.seq, units, span };
        // There may be a second portion.
        if !row.queued {
            row.queued = true;
            self.due.push_front((now, slot));
        }
        Some(Ask::new(Question::GiveBack { delta }, limiter, Some((row, slot)), now))
    }

    /// A key for which something is left to settle: of that Limiter, or of any.
    #[must_use]
    pub fn unsettled(&mut self, limiter: Option<u32>) -> Option<Slot> {
        let is_its = |(_, slot): &(Timestamp, Slot)| {
            limiter.is_none_or(|limiter| {
                self.rows.get(*slot).is_some_and(|row| row.limiter == limiter)
            })
        };
        let at = self.due.iter().position(is_its)?;
        let (_, slot) = self.due.remove(at)?;
        // Where that fails, the next call has it done again.
        if let Some(row) = self.rows.get_mut(slot) {
            row.queued = false;
        }
        Some(slot)
    }

    /// Whose key has that row.
    #[must_use]
    pub fn limiter_of(&self, slot: Slot) -> Option<u32> {
        self.rows.get(slot).map(|row| row.limiter)
    }

    /// A row freed since last asked: the index has to forget it.
    pub fn freed(&mut self) -> Option<u32> {
        self.rows.take_freed().map(|(slot, _)| slot)
    }
}

fn asked(verdict: Verdict) -> Option<Ask> {
    match verdict {
        Verdict::Ask(ask) => Some(ask),
        _ => None,
    }
}
