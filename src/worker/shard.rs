//! The Durable Object: the steps beside their rows, in SQLite. A batch is one transaction with nothing to wait
//! for in it. Wire and rows are those of [`shard`](crate::shard), so that the class for JavaScript Workers can
//! take this one's place.
//!
//! A row that is over counts for nothing from that moment on, and is swept away some time later: by an alarm,
//! an hour after the first write at the earliest and then when the next row is over, no more often than once
//! an hour. An object whose last row went deletes all it has.

use core::cell::Cell;
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};

use super::js::{self, ObjectState, Sql, Storage};
use super::objects;
use crate::store::shard::{self, BatchError, Rows, Tally};
use crate::time::{Millis, Timestamp};

// A statement is one call to the other side, and its text stays there. One row per key, without a second table for
// the key to be found by, and without an index that every decision would have to write: sweeps are rare enough to
// read all rows.
#[wasm_bindgen(inline_js = "
const CREATE = 'CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, record TEXT NOT NULL, over_at INTEGER NOT NULL) WITHOUT ROWID';
const GET = 'SELECT record FROM records WHERE key = ?';
const PUT = 'INSERT INTO records (key, record, over_at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET record = excluded.record, over_at = excluded.over_at';
const DELETE = 'DELETE FROM records WHERE key = ?';
const SWEEP = 'DELETE FROM records WHERE over_at <= ?';
const NEXT = 'SELECT MIN(over_at) FROM records';
const first = (cursor) => cursor.raw().next().value?.[0] ?? undefined;
export const create_table = (sql) => void sql.exec(CREATE);
export const get_row = (sql, key) => first(sql.exec(GET, key));
export const put_row = (sql, ...row) => void sql.exec(PUT, ...row);
export const delete_row = (sql, key) => void sql.exec(DELETE, key);
export const sweep_rows = (sql, now) => {
  sql.exec(SWEEP, now);
  return first(sql.exec(NEXT));
};
")]
extern "C" {
    #[wasm_bindgen(catch)]
    fn create_table(sql: &Sql) -> Result<(), JsValue>;

    #[wasm_bindgen(catch)]
    fn get_row(sql: &Sql, key: &str) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(catch)]
    fn put_row(sql: &Sql, key: &str, record: &str, over_at: f64) -> Result<(), JsValue>;

    #[wasm_bindgen(catch)]
    fn delete_row(sql: &Sql, key: &str) -> Result<(), JsValue>;

    /// Deletes what is over; answers when the next row is, if there is one.
    #[wasm_bindgen(catch)]
    fn sweep_rows(sql: &Sql, now: f64) -> Result<Option<f64>, JsValue>;
}

const SWEEP_AFTER: Millis = Millis::from_ms(3_600_000);

/// New keys are refused from this size on; a Durable Object may have ten times as much.
const MOST_BYTES: f64 = 1_073_741_824.0;

/// When the row with the number of shards is over, which the class for JavaScript Workers keeps.
const NEVER: f64 = 9_007_199_254_740_991.0;

/// A shard of the keys, as the runtime knows it.
///
/// It is exported as it stands: what the `worker` crate would put around it reads every request's address and
/// headers first, which takes longer than a decision.
#[wasm_bindgen]
pub struct TidegateShard(Rc<Shard>);

struct Shard {
    storage: Storage,
    env: JsValue,
    /// Whether the table is known to be there.
    ready: Cell<bool>,
    /// Whether an alarm is known to be set.
    armed: Cell<bool>,
    tally: Cell<Tally>,
    since: Timestamp,
}

#[wasm_bindgen]
impl TidegateShard {
    /// The object, when it is needed.
    #[wasm_bindgen(constructor)]
    pub fn new(state: &ObjectState, env: JsValue) -> Self {
        let (ready, armed, tally) = Default::default();
        let storage = state.storage();
        Self(Rc::new(Shard { storage, env, ready, armed, tally, since: js::now() }))
    }

    /// Runs a batch, or tells what was counted.
    pub fn fetch(&self, request: Request) -> Promise {
        let shard = self.0.clone();
        js::promised(async move { shard.fetch(&request).await.map(JsValue::from) })
    }

    /// Sweeps.
    pub fn alarm(&self) -> Promise {
        let shard = self.0.clone();
        js::promised(async move { shard.alarm().await.map(|()| JsValue::UNDEFINED) })
    }
}

impl Shard {
    async fn fetch(&self, request: &Request) -> Result<Response, JsValue> {
        let (status, text) = match request.url() {
            url if url.ends_with("/tally") => (200, self.told()),
            url if url.ends_with("/shards") => self.shards(),
            _ => self.run(&js::request_text(request).await?),
        };
        // What was charged is answered, and the next request tries again.
        if self.ready.get() && !self.armed.replace(true) && self.arm().await.is_err() {
            self.armed.set(false);
        }
        js::respond(status, &text, &[])
    }

    /// How many there are, whatever the caller counts on.
    fn shards(&self) -> (u16, String) {
        match objects::shards(&self.env) {
            Ok(shards) => (200, shards.to_string()),
            Err(fault) => (fault.status, fault.message),
        }
    }

    /// Alarms that fail are tried again a few times only, so another one is set.
    async fn alarm(&self) -> Result<(), JsValue> {
        let swept = self.sweep().await;
        if swept.is_err() {
            self.wake(js::now().plus(SWEEP_AFTER)).await?;
        }
        swept
    }

    /// The critical section: from the first row that is read to the last that is written nobody waits.
    fn run(&self, batch: &str) -> (u16, String) {
        let shards = match objects::shards(&self.env) {
            Ok(shards) => shards,
            Err(fault) => return (503, fault.message),
        };
        let mut tally = self.tally.get();
        match self.step(batch, shards, &mut tally) {
            Ok(reply) => {
                self.tally.set(tally);
                (200, reply)
            }
            Err(BatchError::Shards) => (409, format!("this deployment has {shards} shards")),
            Err(BatchError::Unreadable) => (400, "not a batch of version 1".into()),
            Err(BatchError::Rows(thrown)) => {
                self.ready.set(false);
                (500, js::words(&thrown))
            }
        }
    }

    /// All of a batch, or nothing. An operation alone writes a row at most, and needs no transaction around it.
    fn step(
        &self,
        batch: &str,
        shards: u32,
        tally: &mut Tally,
    ) -> Result<String, BatchError<JsValue>> {
        let now = js::now();
        let table = Table { sql: self.table().map_err(BatchError::Rows)? };
        let mut run = || shard::run(&table, Some(shards), batch, now, tally);
        if batch.matches('\n').nth(1).is_none() {
            return run();
        }
        let mut reply = Err(BatchError::Unreadable);
        let done = self.storage.transaction_sync(&mut || match run() {
            Err(BatchError::Rows(thrown)) => Err(thrown),
            other => {
                reply = other;
                Ok(JsValue::UNDEFINED)
            }
        });
        done.map_err(BatchError::Rows).and(reply)
    }

    fn table(&self) -> Result<Sql, JsValue> {
        let sql = self.storage.sql();
        if !self.ready.get() {
            create_table(&sql)?;
            self.ready.set(true);
        }
        Ok(sql)
    }

    /// Sees to it that there is an alarm.
    async fn arm(&self) -> Result<(), JsValue> {
        let set = JsFuture::from(self.storage.get_alarm()?).await?;
        if set.is_null() { self.wake(js::now().plus(SWEEP_AFTER)).await } else { Ok(()) }
    }

    async fn wake(&self, at: Timestamp) -> Result<(), JsValue> {
        JsFuture::from(self.storage.set_alarm(js::number(at))?).await?;
        self.armed.set(true);
        Ok(())
    }

    /// Deletes what is over; everything, when that was the last.
    async fn sweep(&self) -> Result<(), JsValue> {
        self.armed.set(false);
        let now = js::now();
        match sweep_rows(&self.table()?, js::number(now))? {
            Some(next) if next >= NEVER => Ok(()),
            Some(next) => self.wake(js::timestamp(next).max(now.plus(SWEEP_AFTER))).await,
            None => {
                self.ready.set(false);
                JsFuture::from(self.storage.delete_all()?).await.map(drop)
            }
        }
    }

    /// What was counted since when, a line each.
    fn told(&self) -> String {
        let told = self.tally.get().numbers().into_iter().chain([self.since.as_ms()]);
        told.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// The table of a shard.
struct Table {
    sql: Sql,
}

impl Rows for Table {
    type Error = JsValue;

    fn get(&self, key: &str) -> Result<Option<String>, JsValue> {
        get_row(&self.sql, key)
    }

    fn put(&self, key: &str, record: &str, over_at: Timestamp, new: bool) -> Result<bool, JsValue> {
        if new && self.sql.database_size() > MOST_BYTES {
            return Ok(false);
        }
        put_row(&self.sql, key, record, js::number(over_at)).map(|()| true)
    }

    fn delete(&self, key: &str) -> Result<(), JsValue> {
        delete_row(&self.sql, key)
    }
}
