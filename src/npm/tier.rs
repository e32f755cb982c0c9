//! The first of two tiers: what it may decide by itself.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::alone::Alone;
use super::exchange::EXCHANGE;
use super::numbers::{code, millis, number, timestamp, whole};
use super::questions::question_told;
use super::replies::{decision_from, share_from, told};
use super::{NONE, held};
use crate::limit::Limit;
use crate::store::tier::{Ask, Mode, Question, Tier, Verdict, over_admission_bound};
use crate::store::{Slot, wire};
use crate::time::Clock;

/// A tier, and the block in which it tells what one number does not hold.
struct First {
    tier: Tier,
    mode: Mode,
    out: Box<[f64; 8]>,
    /// What the last call wants to have asked.
    asks: Option<Ask>,
}

static TIERS: Alone<Vec<Option<First>>> = Alone::new(Vec::new());
/// Questions to the shared store.
static ASKS: Alone<Vec<Option<Ask>>> = Alone::new(Vec::new());

/// There is nothing: no slot, no decision, no question.
const NOTHING: i32 = -1;
/// The shared store is to be asked.
const ASK: i32 = 0;
/// It is to be asked first, and then the call to be made again.
const ASK_FIRST: i32 = 1;
/// It is being asked; then the call is to be made again.
const WAIT: i32 = 2;

/// Makes a tier; answers its number. `mode`: 0 remembers denials, 1 leases at most so many units, 2 decides at once,
/// with at most so many units unsynced. `callers_clock`: callers' clocks decide in the shared store.
#[unsafe(no_mangle)]
extern "C" fn tier(
    mode: u32,
    most: f64,
    sync_every_ms: f64,
    most_keys: u32,
    callers_clock: u32,
) -> u32 {
    let mode = match mode {
        0 => Mode::DenyCache,
        1 => Mode::Lease(whole(most)),
        _ => Mode::Eager { most_unsynced: whole(most), sync_every: millis(sync_every_ms) },
    };
    let clock = if callers_clock == 0 { Clock::Store } else { Clock::Caller };
    let tier = Tier::new(mode, clock, most_keys);
    TIERS.place(First { tier, mode, out: Box::new([0.0; 8]), asks: None })
}

/// Gives it back.
#[unsafe(no_mangle)]
extern "C" fn free_tier(tier: u32) {
    TIERS.free(tier);
}

/// Where the block of numbers is.
#[unsafe(no_mangle)]
extern "C" fn tier_out(tier: u32) -> usize {
    TIERS.at(tier, |first| first.out.as_ptr().addr()).unwrap_or(0)
}

/// Makes a Limiter's limits known, which are in words; `node` is nobody else's.
#[unsafe(no_mangle)]
extern "C" fn tier_register(tier: u32, words: i32, node: u32) -> i32 {
    let Some(limits) = EXCHANGE.text(words).and_then(|words| wire::limits(&words)) else {
        return NOTHING;
    };
    let run = |first: &mut First| code(first.tier.register(limits, node.into()));
    TIERS.at(tier, run).unwrap_or(NOTHING)
}

/// The reason, with the decision in the tier's block, if it can be decided here; else NOTHING.
#[unsafe(no_mangle)]
extern "C" fn tier_decide(tier: u32, limiter: u32, index: u32, cost: f64, now: f64) -> i32 {
    let run = |first: &mut First| {
        let decided = first.tier.decide(limiter, any(index), whole(cost), timestamp(now))?;
        let (decision, ahead) = decided;
        first.asks = ahead;
        for (out, value) in first.out.iter_mut().zip(told(&decision)) {
            *out = value;
        }
        Some(decision.reason as i32)
    };
    TIERS.at(tier, run).flatten().unwrap_or(NOTHING)
}

/// That Limiter is closed, and all of its keys are forgotten.
#[unsafe(no_mangle)]
extern "C" fn tier_release(tier: u32, limiter: u32) {
    TIERS.at(tier, |first| first.tier.release(limiter));
}

/// The Limiter of that key is closed.
#[unsafe(no_mangle)]
extern "C" fn tier_forget(tier: u32, index: u32) {
    TIERS.at(tier, |first| first.tier.forget(any(index)));
}

/// What is to be done for a call that cannot be decided here; the tier's block holds the key's slot.
#[unsafe(no_mangle)]
extern "C" fn tier_ask(tier: u32, limiter: u32, index: u32, cost: f64, now: f64) -> i32 {
    let run = |first: &mut First| {
        let slot = held(index, Slot::ANY);
        let (verdict, slot) = first.tier.ask(limiter, slot, whole(cost), timestamp(now));
        let [.., place, _] = &mut *first.out;
        *place = f64::from(code(slot.map_or(NONE, |slot| slot.index)));
        let (code, ask) = match verdict {
            Verdict::Ask(ask) => (ASK, Some(ask)),
            Verdict::AskFirst(ask) => (ASK_FIRST, Some(ask)),
            Verdict::Wait => (WAIT, None),
        };
        first.asks = ask;
        code
    };
    TIERS.at(tier, run).unwrap_or(NOTHING)
}

/// The number of what the last call wants to have asked, as `asked` tells it.
#[unsafe(no_mangle)]
extern "C" fn tier_question(tier: u32) -> i32 {
    asked(TIERS.at(tier, |first| first.asks.take()).flatten())
}

/// What the shared store answered, in so many numbers of the block; none of what it was only told. The question is
/// over.
#[unsafe(no_mangle)]
extern "C" fn tier_told(tier: u32, ask: u32, count: usize, now: f64) {
    let Some(ask) = ASKS.take(ask) else { return };
    let now = timestamp(now);
    let numbers = EXCHANGE.on(|exchange| exchange.numbers.get(..count).map(Vec::from));
    let numbers = numbers.unwrap_or_default();
    TIERS.at(tier, |First { tier, .. }| match ask.question {
        Question::GiveBack { .. } => tier.given_back(&ask),
        Question::Consume { .. } => match decision_from(&numbers) {
            Some(decision) => tier.decided(&ask, &decision, now),
            None => tier.failed(&ask),
        },
        _ => match share_from(&numbers) {
            Some(share) => tier.shared(&ask, &share, now),
            None => tier.failed(&ask),
        },
    });
}

/// It did not answer. The question is over.
#[unsafe(no_mangle)]
extern "C" fn tier_failed(tier: u32, ask: u32) {
    if let Some(ask) = ASKS.take(ask) {
        TIERS.at(tier, |first| first.tier.failed(&ask));
    }
}

/// This process gives units back itself.
#[unsafe(no_mangle)]
extern "C" fn tier_refunded(tier: u32, index: u32) {
    TIERS.at(tier, |first| first.tier.refunded(any(index)));
}

/// This process blocks the key itself.
#[unsafe(no_mangle)]
extern "C" fn tier_blocked(tier: u32, index: u32, now: f64) {
    TIERS.at(tier, |first| first.tier.blocked(any(index), timestamp(now)));
}

/// This process resets the key itself.
#[unsafe(no_mangle)]
extern "C" fn tier_reset(tier: u32, index: u32) {
    TIERS.at(tier, |first| first.tier.reset(any(index)));
}

/// The next question that is due, if there is one, as `asked` tells it.
#[unsafe(no_mangle)]
extern "C" fn tier_due(tier: u32, now: f64) -> i32 {
    asked(TIERS.at(tier, |first| first.tier.due(timestamp(now))).flatten())
}

/// When something will be due; NaN for never.
#[unsafe(no_mangle)]
extern "C" fn tier_due_at(tier: u32) -> f64 {
    let at = TIERS.at(tier, |first| first.tier.due_at()).flatten();
    at.map_or(f64::NAN, |at| number(at.as_ms()))
}

/// The next question that leaves nothing of the key here, as `asked` tells it.
#[unsafe(no_mangle)]
extern "C" fn tier_settle(tier: u32, index: u32, now: f64) -> i32 {
    asked(TIERS.at(tier, |first| first.tier.settle(any(index), timestamp(now))).flatten())
}

/// A slot for which something is left to settle, or NOTHING; of that Limiter, or with NOTHING of any.
#[unsafe(no_mangle)]
extern "C" fn tier_unsettled(tier: u32, limiter: i32) -> i32 {
    let limiter = u32::try_from(limiter).ok();
    let slot = TIERS.at(tier, |first| first.tier.unsettled(limiter)).flatten();
    slot.map_or(NOTHING, |slot| code(slot.index))
}

/// Whose key has that slot, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn tier_limiter_of(tier: u32, index: u32) -> i32 {
    TIERS.at(tier, |first| first.tier.limiter_of(any(index))).flatten().map_or(NOTHING, code)
}

/// A slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn tier_freed(tier: u32) -> i32 {
    TIERS.at(tier, |first| first.tier.freed()).flatten().map_or(NOTHING, code)
}

/// The most that so many nodes can admit above the limit, which is in words, in one window.
#[unsafe(no_mangle)]
extern "C" fn tier_bound(tier: u32, words: i32, nodes: f64) -> f64 {
    let limits = EXCHANGE.text(words).and_then(|words| wire::limits(&words));
    let bound = |first: &mut First| {
        let limit = limits.as_ref()?.first()?;
        Some(number(over_admission_bound(first.mode, Limit::shape(limit), whole(nodes))))
    };
    TIERS.at(tier, bound).flatten().unwrap_or(0.0)
}

/// The number of a question, or NOTHING; in the block whose limits it is about, the key's slot or NOTHING, and the
/// question itself.
fn asked(ask: Option<Ask>) -> i32 {
    let Some(ask) = ask else { return NOTHING };
    let slot = ask.slot.map_or(NOTHING, |slot| code(slot.index));
    EXCHANGE.on(|exchange| {
        let [limiter, place, rest @ ..] = &mut exchange.numbers;
        (*limiter, *place) = (f64::from(ask.limiter), f64::from(slot));
        for (place, number) in rest.iter_mut().zip(question_told(&ask.question)) {
            *place = number;
        }
    });
    code(ASKS.place(ask))
}

const fn any(index: u32) -> Slot {
    Slot { index, generation: Slot::ANY }
}
