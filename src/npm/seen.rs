//! The ids that this process knows to be done.

use alloc::vec::Vec;

use super::alone::Alone;
use super::exchange::EXCHANGE;
use super::numbers::{code, timestamp};
use super::replies::message_told;
use super::{NONE, held};
use crate::dedup::{MessageOp, MessageReply};
use crate::store::Slot;
use crate::store::tier::{Seen, SeenAsk};
use crate::store::wire;

static SEEN: Alone<Vec<Option<Seen>>> = Alone::new(Vec::new());
/// Calls about ids that are under way.
static QUESTIONS: Alone<Vec<Option<(SeenAsk, MessageOp)>>> = Alone::new(Vec::new());

/// Remembers at most so many ids; answers the number of what remembers them.
#[unsafe(no_mangle)]
extern "C" fn seen(most_ids: u32) -> u32 {
    SEEN.place(Seen::new(most_ids))
}

/// Gives it back.
#[unsafe(no_mangle)]
extern "C" fn free_seen(seen: u32) {
    SEEN.free(seen);
}

/// What is known of the id, if that answers the operation in the words of the Redis script: the number of its status,
/// with the rest in the block; else -1.
#[unsafe(no_mangle)]
extern "C" fn seen_answer(seen: u32, index: u32, words: i32, now: f64) -> i32 {
    let slot = Slot { index, generation: Slot::ANY };
    let Some(op) = EXCHANGE.text(words).and_then(|words| wire::message(&words)) else { return -1 };
    let reply = SEEN.at(seen, |seen| seen.answer(slot, &op, timestamp(now))).flatten();
    reply.map_or(-1, message_told)
}

/// The shared store is going to be asked: the number of the question, with the id's slot or NONE in the block.
#[unsafe(no_mangle)]
extern "C" fn seen_ask(seen: u32, index: u32, words: i32, now: f64) -> i32 {
    let slot = held(index, Slot::ANY);
    let Some(op) = EXCHANGE.text(words).and_then(|words| wire::message(&words)) else { return -1 };
    let asked = SEEN.at(seen, |seen| seen.ask(slot, &op, timestamp(now)));
    let Some((ask, slot)) = asked else { return -1 };
    EXCHANGE.tell(&[f64::from(code(slot.map_or(NONE, |slot| slot.index)))]);
    code(QUESTIONS.place((ask, op)))
}

/// Whether the call did what it asked for; false when nobody knows. The question is over.
#[unsafe(no_mangle)]
extern "C" fn seen_told(seen: u32, question: u32, yes: u32) {
    if let Some((ask, op)) = QUESTIONS.take(question) {
        SEEN.at(seen, |seen| seen.told(&ask, &op, &MessageReply::Flag(yes != 0)));
    }
}

/// A slot freed since last asked, or NONE.
#[unsafe(no_mangle)]
extern "C" fn seen_freed(seen: u32) -> i32 {
    code(SEEN.at(seen, Seen::freed).flatten().unwrap_or(NONE))
}
