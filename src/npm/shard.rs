//! A shard whose rows JavaScript keeps: the Durable Object class of the npm package.

use alloc::string::String;

use super::exchange::EXCHANGE;
use super::numbers::{number, timestamp};
use crate::store::shard::{self, BatchError, Rows, Tally};
use crate::time::Timestamp;

/// What the rows answer where they threw; whoever asked for the batch learns what.
const THREW: i32 = -2;

#[link(wasm_import_module = "rows")]
unsafe extern "C" {
    /// The length of the record under a key, which is handed over; -1 for none.
    #[link_name = "get"]
    safe fn get_row(key: usize, key_length: usize) -> i32;
    /// Keeps a record; 0 where a new row finds no room.
    #[link_name = "put"]
    safe fn put_row(
        key: usize,
        key_length: usize,
        record: usize,
        record_length: usize,
        over_at: f64,
        new: u32,
    ) -> i32;
    #[link_name = "delete"]
    safe fn delete_row(key: usize, key_length: usize) -> i32;
}

/// The rows of whoever asked for the batch.
struct TheRows;

/// They threw.
struct Thrown;

impl Rows for TheRows {
    type Error = Thrown;

    fn get(&self, key: &str) -> Result<Option<String>, Thrown> {
        let record = thrown(get_row(key.as_ptr().addr(), key.len()))?;
        Ok(EXCHANGE.text(record))
    }

    fn put(&self, key: &str, record: &str, over_at: Timestamp, new: bool) -> Result<bool, Thrown> {
        let over_at = number(over_at.as_ms());
        let (key, key_length) = (key.as_ptr().addr(), key.len());
        let (record, length) = (record.as_ptr().addr(), record.len());
        let kept = put_row(key, key_length, record, length, over_at, new.into());
        Ok(thrown(kept)? == 1)
    }

    fn delete(&self, key: &str) -> Result<(), Thrown> {
        thrown(delete_row(key.as_ptr().addr(), key.len())).map(|_| ())
    }
}

const fn thrown(answer: i32) -> Result<i32, Thrown> {
    if answer == THREW { Err(Thrown) } else { Ok(answer) }
}

/// Runs a batch on the rows; `shards` is the number of the setting, negative where there is none. Answers the length of
/// the reply, with what was counted in the block; or the status of a refusal as a negative number, or THREW.
#[unsafe(no_mangle)]
extern "C" fn run_batch(shards: i32, batch: i32, now: f64) -> i32 {
    let mut counted = Tally::default();
    let batch = EXCHANGE.text(batch).unwrap_or_default();
    match shard::run(&TheRows, u32::try_from(shards).ok(), &batch, timestamp(now), &mut counted) {
        Ok(reply) => {
            EXCHANGE.tell(&counted.numbers().map(number));
            EXCHANGE.answer(reply)
        }
        Err(BatchError::Unreadable) => -400,
        Err(BatchError::Shards) => -409,
        Err(BatchError::Rows(Thrown)) => THREW,
    }
}
