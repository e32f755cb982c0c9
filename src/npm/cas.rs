//! Stores with a conditional write: what to write is decided here, and JavaScript reads and writes.

use super::exchange::EXCHANGE;
use super::numbers::{length, number, timestamp};
use crate::store::wire::{self, Replies};
use crate::store::{Plan, plan};
use crate::time::Clock;

/// Runs an operation, in the words of the Redis script, on the text that a key holds, both handed over: the length of
/// the reply, as the script would pack it, behind which the text to be written stands. The block tells how long that
/// is, or that nothing is to be written, and for how long it is to live. Negative: the words make no sense.
#[unsafe(no_mangle)]
extern "C" fn plan_step(words: i32, record: i32, now: f64, callers_clock: u32) -> i32 {
    let (words, record) = (EXCHANGE.text(words), EXCHANGE.text(record));
    let Some(op) = words.and_then(|words| wire::read(&words)) else { return -1 };
    let clock = if callers_clock == 0 { Clock::Store } else { Clock::Caller };
    let plan = plan::<&str>(record.as_deref(), &op.as_op(), timestamp(now), clock);
    let (reply, write) = match plan {
        Ok(Plan { reply, write }) => (Ok(reply), write),
        Err(error) => (Err(error), None),
    };
    let mut replies = Replies::default();
    replies.push::<&str>(&reply);
    let mut text = replies.into_text();
    let told = length(text.len());
    let (next, ttl) = write.map_or((-1, 0), |(next, ttl)| {
        text.push_str(&next);
        (length(next.len()), ttl.as_ms())
    });
    EXCHANGE.tell(&[f64::from(next), number(ttl)]);
    EXCHANGE.answer(text);
    told
}
