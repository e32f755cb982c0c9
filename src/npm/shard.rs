//! A shard whose rows JavaScript keeps: the Durable Object class of the npm package.

use wasm_bindgen::prelude::*;

use super::numbers::{number, timestamp};
use crate::store::shard::{self, BatchError, Rows, Tally};
use crate::time::Timestamp;

#[wasm_bindgen]
extern "C" {
    /// The rows. What their methods throw is an `Err`.
    #[wasm_bindgen(
        typescript_type = "{ get(key: string): string | undefined; put(key: string, record: string, overAt: number, isNew: boolean): boolean; delete(key: string): void }"
    )]
    pub type ShardRows;

    #[wasm_bindgen(structural, method, catch)]
    fn get(this: &ShardRows, key: &str) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(structural, method, catch)]
    fn put(
        this: &ShardRows,
        key: &str,
        record: &str,
        over_at: f64,
        new: bool,
    ) -> Result<bool, JsValue>;

    #[wasm_bindgen(structural, method, catch)]
    fn delete(this: &ShardRows, key: &str) -> Result<(), JsValue>;
}

impl Rows for ShardRows {
    type Error = JsValue;

    fn get(&self, key: &str) -> Result<Option<String>, JsValue> {
        self.get(key)
    }

    fn put(&self, key: &str, record: &str, over_at: Timestamp, new: bool) -> Result<bool, JsValue> {
        self.put(key, record, number(over_at.as_ms()), new)
    }

    fn delete(&self, key: &str) -> Result<(), JsValue> {
        self.delete(key)
    }
}

/// Runs a batch on the rows and adds to the tally; `shards` is the number of the setting, where there is one. Answers
/// the reply, or the status of a refusal; throws what the rows threw.
#[wasm_bindgen(unchecked_return_type = "string | number")]
pub fn run_batch(
    rows: &ShardRows,
    shards: Option<u32>,
    batch: &str,
    now: f64,
    tally: &mut [f64],
) -> Result<JsValue, JsValue> {
    let mut counted = Tally::default();
    match shard::run(rows, shards, batch, timestamp(now), &mut counted) {
        Ok(reply) => {
            for (total, count) in tally.iter_mut().zip(counted.numbers()) {
                *total += number(count);
            }
            Ok(reply.into())
        }
        Err(BatchError::Unreadable) => Ok(400.into()),
        Err(BatchError::Shards) => Ok(409.into()),
        Err(BatchError::Rows(thrown)) => Err(thrown),
    }
}
