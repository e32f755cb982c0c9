//! The first of two tiers.

use wasm_bindgen::prelude::*;

use super::numbers::{millis, number, timestamp, whole};
use super::questions::question_told;
use super::replies::{decision_from, share_from, told};
use super::{NONE, held};
use crate::limit::Limit;
use crate::store::tier::{Ask, Mode, Question, Tier, Verdict, over_admission_bound};
use crate::store::{Slot, wire};
use crate::time::Clock;

/// The first of two tiers: what it may decide by itself.
#[wasm_bindgen]
pub struct FirstTier {
    tier: Tier,
    mode: Mode,
    out: Box<[f64; 8]>,
    asks: Option<Ask>,
}

/// The shared store is to be asked.
const ASK: u32 = 0;
/// It is to be asked first, and then the call to be made again.
const ASK_FIRST: u32 = 1;
/// It is being asked; then the call is to be made again.
const WAIT: u32 = 2;

#[wasm_bindgen]
impl FirstTier {
    /// `mode` has been checked; `most` is the largest share, or the most units that may be unsynced.
    /// `callers_clock`: callers' clocks decide in the shared store.
    #[wasm_bindgen(constructor)]
    pub fn new(
        mode: &str,
        most: f64,
        sync_every_ms: f64,
        most_keys: u32,
        callers_clock: bool,
    ) -> FirstTier {
        let mode = match mode {
            "lease" => Mode::Lease(whole(most)),
            "eager" => {
                Mode::Eager { most_unsynced: whole(most), sync_every: millis(sync_every_ms) }
            }
            _ => Mode::DenyCache,
        };
        let clock = if callers_clock { Clock::Caller } else { Clock::Store };
        let tier = Tier::new(mode, clock, most_keys);
        FirstTier { tier, mode, out: Box::new([0.0; 8]), asks: None }
    }

    /// Where the block of numbers is.
    pub fn out(&self) -> usize {
        self.out.as_ptr().addr()
    }

    /// Makes a Limiter's limits known, which are in words; `node` is nobody else's.
    pub fn register(&mut self, limits: &str, node: u32) -> u32 {
        wire::limits(limits).map_or(NONE, |limits| self.tier.register(limits, node.into()))
    }

    /// The reason, with the decision in the block, if it can be decided here; else NONE.
    pub fn decide(&mut self, limiter: u32, index: u32, cost: f64, now: f64) -> u32 {
        let slot = Slot { index, generation: Slot::ANY };
        let decided = self.tier.decide(limiter, slot, whole(cost), timestamp(now));
        let Some((decision, ahead)) = decided else { return NONE };
        self.asks = ahead;
        for (out, value) in self.out.iter_mut().zip(told(&decision)) {
            *out = value;
        }
        decision.reason as u32
    }

    /// That Limiter is closed, and all of its keys are forgotten.
    pub fn release(&mut self, limiter: u32) {
        self.tier.release(limiter);
    }

    /// The Limiter of that key is closed.
    pub fn forget(&mut self, index: u32) {
        self.tier.forget(Slot { index, generation: Slot::ANY });
    }

    /// What is to be done for a call that cannot be decided here; the block holds the key's slot.
    pub fn ask(&mut self, limiter: u32, index: u32, cost: f64, now: f64) -> u32 {
        let slot = held(index, Slot::ANY);
        let (verdict, slot) = self.tier.ask(limiter, slot, whole(cost), timestamp(now));
        let [.., place, _] = &mut *self.out;
        *place = f64::from(slot.map_or(NONE, |slot| slot.index));
        let (code, ask) = match verdict {
            Verdict::Ask(ask) => (ASK, Some(ask)),
            Verdict::AskFirst(ask) => (ASK_FIRST, Some(ask)),
            Verdict::Wait => (WAIT, None),
        };
        self.asks = ask;
        code
    }

    /// What the last call wants to have asked.
    pub fn question(&mut self) -> Option<TierAsk> {
        self.asks.take().map(TierAsk)
    }

    /// What the shared store answered, in numbers; nothing of what it was only told. The question is over.
    pub fn told(&mut self, ask: TierAsk, numbers: &[f64], now: f64) {
        let now = timestamp(now);
        match ask.0.question {
            Question::GiveBack { .. } => self.tier.given_back(&ask.0),
            Question::Consume { .. } => match decision_from(numbers) {
                Some(decision) => self.tier.decided(&ask.0, &decision, now),
                None => self.tier.failed(&ask.0),
            },
            _ => match share_from(numbers) {
                Some(share) => self.tier.shared(&ask.0, &share, now),
                None => self.tier.failed(&ask.0),
            },
        }
    }

    /// It did not answer. The question is over.
    pub fn failed(&mut self, ask: TierAsk) {
        self.tier.failed(&ask.0);
    }

    /// This process gives units back itself.
    pub fn refunded(&mut self, index: u32) {
        self.tier.refunded(Slot { index, generation: Slot::ANY });
    }

    /// This process blocks the key itself.
    pub fn blocked(&mut self, index: u32, now: f64) {
        self.tier.blocked(Slot { index, generation: Slot::ANY }, timestamp(now));
    }

    /// This process resets the key itself.
    pub fn reset(&mut self, index: u32) {
        self.tier.reset(Slot { index, generation: Slot::ANY });
    }

    /// The next question that is due, if there is one.
    pub fn due(&mut self, now: f64) -> Option<TierAsk> {
        self.tier.due(timestamp(now)).map(TierAsk)
    }

    /// When something will be due; NaN for never.
    pub fn due_at(&self) -> f64 {
        self.tier.due_at().map_or(f64::NAN, |at| number(at.as_ms()))
    }

    /// The next question that leaves nothing of the key here.
    pub fn settle(&mut self, index: u32, now: f64) -> Option<TierAsk> {
        self.tier.settle(Slot { index, generation: Slot::ANY }, timestamp(now)).map(TierAsk)
    }

    /// A slot for which something is left to settle, or NONE; of that Limiter, or with NONE of any.
    pub fn unsettled(&mut self, limiter: u32) -> u32 {
        let limiter = (limiter != NONE).then_some(limiter);
        self.tier.unsettled(limiter).map_or(NONE, |slot| slot.index)
    }

    /// Whose key has that slot, or NONE.
    pub fn limiter_of(&self, index: u32) -> u32 {
        self.tier.limiter_of(Slot { index, generation: Slot::ANY }).unwrap_or(NONE)
    }

    /// A slot freed since last asked, or NONE.
    pub fn freed(&mut self) -> u32 {
        self.tier.freed().unwrap_or(NONE)
    }

    /// The most that so many nodes can admit above the limit, which is in words, in one window.
    pub fn over_admission_bound(&self, limits: &str, nodes: f64) -> f64 {
        let bound = |limit: &Limit| over_admission_bound(self.mode, limit.shape(), whole(nodes));
        let limits = wire::limits(limits);
        limits.and_then(|limits| limits.first().map(bound)).map_or(0.0, number)
    }
}

/// A tier's question to the shared store.
#[wasm_bindgen]
pub struct TierAsk(Ask);

#[wasm_bindgen]
impl TierAsk {
    /// Whose limits it is about.
    pub fn limiter(&self) -> u32 {
        self.0.limiter
    }

    /// The key's slot, or NONE.
    pub fn slot(&self) -> u32 {
        self.0.slot.map_or(NONE, |slot| slot.index)
    }

    /// The question in numbers.
    pub fn question(&self) -> Vec<f64> {
        question_told(&self.0.question).into()
    }
}
