//! The tables of a MemoryStore.
//!
//! Functions take and answer numbers, and the tables are one of them: the adapter around a method, which copies its
//! arguments, counts references and borrows, takes longer than a decision.

use alloc::boxed::Box;
use alloc::string::String;

use super::alone::{Alone, Numbered};
use super::exchange::EXCHANGE;
use super::numbers::{code, millis, timestamp, whole};
use super::questions::question_from;
use super::replies::{message_told, observation_told, share_told, told};
use super::{NONE, held};
use crate::dedup::{MessageOp, MessageReply, Tag};
use crate::limit::Decision;
use crate::store::{LimiterId, MemoryTable, OnFull, Slot, wire};
use crate::text::push_number;

/// Answered as a signed number: no slot, a stale slot, or no table.
const NOTHING: i32 = -1;
/// There is no room for a new key.
const FULL: i32 = -2;
/// The words make no sense.
const UNREADABLE: i32 = -3;

/// The tables of one store, and the block of numbers in which they tell what one number does not hold.
struct Tables {
    table: MemoryTable,
    out: Box<[f64; 8]>,
}

/// The tables of every store.
static STORES: Alone<Numbered<Box<Tables>>> = Alone::new(Numbered::new());

/// Runs on the tables of that number; `None` once they were given back.
#[inline(always)]
fn on<T>(store: u32, run: impl FnOnce(&mut Tables) -> T) -> Option<T> {
    STORES.at(store, |tables| run(tables))
}

/// The reason alone; NOTHING when the slot is stale.
#[unsafe(no_mangle)]
extern "C" fn try_consume(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let (cost, now) = (whole(cost), timestamp(now));
    let slot = Slot { index, generation };
    let run = |tables: &mut Tables| tables.table.try_consume(LimiterId(limiter), slot, cost, now);
    on(store, run).flatten().map_or(NOTHING, |reason| reason as i32)
}

/// The reason, with the decision in the block; NOTHING when the slot is stale.
#[unsafe(no_mangle)]
extern "C" fn consume(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let (cost, now) = (whole(cost), timestamp(now));
    let slot = Slot { index, generation };
    let run = |tables: &mut Tables| {
        let decision = tables.table.consume(LimiterId(limiter), slot, cost, now)?;
        Some(tables.tell(&decision))
    };
    on(store, run).flatten().unwrap_or(NOTHING)
}

/// As `consume`, for a key without a slot; the block then holds the slot that it was given.
#[unsafe(no_mangle)]
extern "C" fn consume_new(store: u32, limiter: u32, cost: f64, now: f64) -> i32 {
    let run = |tables: &mut Tables| {
        let (decision, slot) =
            tables.table.consume_new(LimiterId(limiter), whole(cost), timestamp(now));
        tables.tell_slot(slot);
        tables.tell(&decision)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// As `consume`, changing nothing; the slot may be NONE.
#[unsafe(no_mangle)]
extern "C" fn peek(
    store: u32,
    limiter: u32,
    index: u32,
    generation: u32,
    cost: f64,
    now: f64,
) -> i32 {
    let slot = held(index, generation);
    let run = |tables: &mut Tables| {
        let decision = tables.table.peek(LimiterId(limiter), slot, whole(cost), timestamp(now));
        tables.tell(&decision)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// Gives units back.
#[unsafe(no_mangle)]
extern "C" fn refund(store: u32, limiter: u32, index: u32, generation: u32, cost: f64, now: f64) {
    let slot = Slot { index, generation };
    on(store, |tables| {
        tables.table.refund(LimiterId(limiter), slot, whole(cost), timestamp(now));
    });
}

/// Blocks a key; the slot may be NONE, and the block then holds the one that it was given. FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn block(store: u32, index: u32, generation: u32, duration_ms: f64, now: f64) -> i32 {
    let slot = held(index, generation);
    let run = |tables: &mut Tables| {
        let Ok(slot) = tables.table.block(slot, millis(duration_ms), timestamp(now)) else {
            return FULL;
        };
        tables.tell_slot(Some(slot));
        0
    };
    on(store, run).unwrap_or(NOTHING)
}

/// Ends a block.
#[unsafe(no_mangle)]
extern "C" fn unblock(store: u32, index: u32, generation: u32) {
    on(store, |tables| tables.table.unblock(Slot { index, generation }));
}

/// Forgets a Limiter's limits on a key, and the block.
#[unsafe(no_mangle)]
extern "C" fn reset(store: u32, limiter: u32, index: u32, generation: u32) {
    on(store, |tables| tables.table.reset(LimiterId(limiter), Slot { index, generation }));
}

/// Whether this caller is the first with the id, 1 or 0; the block holds the id's slot. FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn first(store: u32, index: u32, generation: u32, ttl_ms: f64, now: f64) -> i32 {
    let op = MessageOp::First { ttl: millis(ttl_ms) };
    hoped(store, index, generation, &op, &MessageReply::Flag(true), now)
}

/// Takes an id under a numbered token: 1, or 0 when it is taken or done; the block holds the id's slot.
/// FULL when there is no room.
#[unsafe(no_mangle)]
extern "C" fn claim(
    store: u32,
    index: u32,
    generation: u32,
    token: f64,
    lease_ms: f64,
    now: f64,
) -> i32 {
    let op = MessageOp::Claim { token: numbered(token), lease: millis(lease_ms), payload: None };
    hoped(store, index, generation, &op, &MessageReply::Fresh, now)
}

/// Runs an operation on an id; 1 when it answers what was hoped for.
fn hoped(
    store: u32,
    index: u32,
    generation: u32,
    op: &MessageOp,
    answer: &MessageReply,
    now: f64,
) -> i32 {
    let run = |tables: &mut Tables| {
        let told = tables.table.message(held(index, generation), op, timestamp(now));
        let Ok((reply, slot)) = told else { return FULL };
        tables.tell_slot(slot);
        i32::from(reply == *answer)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// The generation of the limit's row at a slot.
#[unsafe(no_mangle)]
extern "C" fn generation(store: u32, index: u32) -> i32 {
    code(on(store, |tables| tables.table.limit_generation(index)).flatten().unwrap_or(0))
}

/// A limit's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_limit(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_limit()).flatten().map_or(NOTHING, code)
}

/// An id's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_message(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_message()).flatten().map_or(NOTHING, code)
}

/// An identity's slot freed since last asked, or NOTHING.
#[unsafe(no_mangle)]
extern "C" fn freed_burst(store: u32) -> i32 {
    on(store, |tables| tables.table.freed_burst()).flatten().map_or(NOTHING, code)
}

/// Keys in use.
#[unsafe(no_mangle)]
extern "C" fn size(store: u32) -> i32 {
    code(on(store, |tables| tables.table.len()).unwrap_or(0))
}

/// Lets go of a Limiter's limits.
#[unsafe(no_mangle)]
extern "C" fn unregister(store: u32, limiter: u32) {
    on(store, |tables| tables.table.unregister(LimiterId(limiter)));
}

/// Makes tables of `most_keys` keys each; answers their number.
#[unsafe(no_mangle)]
extern "C" fn tables(most_keys: u32, most_result_bytes: f64, share: u32) -> u32 {
    let on_full = if share == 0 { OnFull::Deny } else { OnFull::Share };
    let bytes = usize::try_from(whole(most_result_bytes)).unwrap_or(usize::MAX);
    let table = MemoryTable::new(most_keys, bytes, on_full);
    STORES.place(Box::new(Tables { table, out: Box::new([0.0; 8]) }))
}

/// Gives the tables back.
#[unsafe(no_mangle)]
extern "C" fn free_tables(store: u32) {
    STORES.free(store);
}

/// Where the block of numbers is.
#[unsafe(no_mangle)]
extern "C" fn out(store: u32) -> usize {
    on(store, |tables| tables.out.as_ptr().addr()).unwrap_or(0)
}

/// Makes a Limiter's limits known, which are in words: so many characters of what was handed over.
#[unsafe(no_mangle)]
extern "C" fn register(store: u32, words: i32) -> i32 {
    let limits = EXCHANGE.text(words).and_then(|words| wire::limits(&words));
    let run = |tables: &mut Tables| Some(code(tables.table.register(limits?).0));
    on(store, run).flatten().unwrap_or(NOTHING)
}

/// Answers a tier's question, which is in the block: how many numbers there are now. This store's block holds the
/// key's slot.
#[unsafe(no_mangle)]
extern "C" fn ask(store: u32, limiter: u32, index: u32, generation: u32, now: f64) -> i32 {
    let Some(question) = EXCHANGE.on(|exchange| question_from(&exchange.numbers)) else {
        return UNREADABLE;
    };
    let slot = held(index, generation);
    let run = |tables: &mut Tables| {
        let (share, slot) = tables.table.tier(LimiterId(limiter), slot, &question, timestamp(now));
        tables.tell_slot(slot);
        share
    };
    let told = |share: Option<_>| share.map_or(0, |share| EXCHANGE.tell(&share_told(&share)));
    on(store, run).map_or(NOTHING, told)
}

/// The work under a numbered token is done: 1, or 0 when the claim was lost; NOTHING, and nothing done, when the
/// slot is no longer the id's.
#[unsafe(no_mangle)]
extern "C" fn commit(
    store: u32,
    index: u32,
    generation: u32,
    token: f64,
    ttl_ms: f64,
    result: i32,
    now: f64,
) -> i32 {
    let slot = Slot { index, generation };
    let held = on(store, |tables| tables.table.holds_message(slot)).unwrap_or(false);
    if !held {
        return NOTHING;
    }
    let result = EXCHANGE.text(result).map(Into::into);
    let (token, ttl) = (numbered(token), millis(ttl_ms));
    let op = MessageOp::Commit { token, ttl, result, payload: None };
    hoped(store, index, generation, &op, &MessageReply::Flag(true), now)
}

/// Runs an operation on an id, in the words of the Redis script: the number of its status, with the wait in the
/// block, or FULL. This store's block holds the id's slot.
#[unsafe(no_mangle)]
extern "C" fn message(store: u32, index: u32, generation: u32, words: i32, now: f64) -> i32 {
    let Some(op) = EXCHANGE.text(words).and_then(|words| wire::message(&words)) else {
        return UNREADABLE;
    };
    let run = |tables: &mut Tables| {
        let slot = held(index, generation);
        let Ok((reply, slot)) = tables.table.message(slot, &op, timestamp(now)) else {
            return FULL;
        };
        tables.tell_slot(slot);
        message_told(reply)
    };
    on(store, run).unwrap_or(NOTHING)
}

/// Counts an observation, in the words of the Redis script; what came of it is in the block. FULL when there is no
/// room. This store's block holds the identity's slot.
#[unsafe(no_mangle)]
extern "C" fn observe(store: u32, index: u32, generation: u32, words: i32, now: f64) -> i32 {
    let observed = EXCHANGE.text(words).and_then(|words| wire::observation(&words));
    let Some((policy, weight, nonce)) = observed else { return UNREADABLE };
    let (slot, now) = (held(index, generation), timestamp(now));
    let run = |tables: &mut Tables| {
        let answer = tables.table.observe(slot, &policy, weight, nonce.as_ref(), now);
        let Ok((observation, slot)) = answer else { return FULL };
        tables.tell_slot(slot);
        EXCHANGE.tell(&observation_told(&observation))
    };
    on(store, run).unwrap_or(NOTHING)
}

/// The tag of a number: its digits.
fn numbered(token: f64) -> Tag {
    let mut digits = String::new();
    push_number(&mut digits, whole(token));
    Tag::new(&digits).unwrap_or_else(|| Tag::hash(digits.as_bytes()))
}

impl Tables {
    #[inline(always)]
    fn tell(&mut self, decision: &Decision) -> i32 {
        let [decided_by, limit, remaining, retry_after, reset_after, ..] = &mut *self.out;
        [*decided_by, *limit, *remaining, *retry_after, *reset_after] = told(decision);
        decision.reason as i32
    }

    fn tell_slot(&mut self, slot: Option<Slot>) {
        let [.., index, generation] = &mut *self.out;
        let slot = slot.unwrap_or(Slot { index: NONE, generation: NONE });
        (*index, *generation) = (f64::from(slot.index), f64::from(slot.generation));
    }
}
