//! The Durable Object: the steps beside their rows, in SQLite. A batch is one transaction with nothing to wait
//! for in it. Wire and rows are those of [`shard`](crate::shard), so that the class for JavaScript Workers can
//! take this one's place.
//!
//! A row that is over counts for nothing from that moment on, and is swept away some time later: by an alarm,
//! an hour after the first write at the earliest and then when the next row is over, no more often than once
//! an hour. An object whose last row went deletes all it has.

use core::cell::Cell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};

use super::js::{self, ObjectState, Sql, Storage};
use super::objects;
use crate::store::shard::{self, BatchError, Rows, Tally};
use crate::time::{Millis, Timestamp};

/// One row per key, without a second table for the key to be found by, and without an index that every
/// decision would have to write: sweeps are rare enough to read all rows.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, record TEXT NOT NULL, over_at INTEGER NOT NULL) WITHOUT ROWID";
const GET: &str = "SELECT record FROM records WHERE key = ?";
const PUT: &str = "INSERT INTO records (key, record, over_at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET record = excluded.record, over_at = excluded.over_at";
const DELETE: &str = "DELETE FROM records WHERE key = ?";
const SWEEP: &str = "DELETE FROM records WHERE over_at <= ?";
const NEXT: &str = "SELECT MIN(over_at) FROM records";

const SWEEP_AFTER: Millis = Millis::from_ms(3_600_000);

/// New keys are refused from this size on; a Durable Object may have ten times as much.
const MOST_BYTES: f64 = 1_073_741_824.0;

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
        match request.url() {
            url if url.ends_with("/tally") => return js::respond(200, &self.told(), &[]),
            url if url.ends_with("/shards") => return self.shards(),
            _ => {}
        }
        let batch = js::request_text(request).await?;
        let (status, text) = self.answer(&batch);
        if self.ready.get() && !self.armed.replace(true) {
            self.arm().await?;
        }
        js::respond(status, &text, &[])
    }

    /// How many there are, whatever the caller counts on.
    fn shards(&self) -> Result<Response, JsValue> {
        match objects::shards(&self.env) {
            Ok(shards) => js::respond(200, &shards.to_string(), &[]),
            Err(fault) => js::respond(fault.status, &fault.message, &[]),
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
    fn answer(&self, batch: &str) -> (u16, String) {
        let shards = match objects::shards(&self.env) {
            Ok(shards) => shards,
            Err(fault) => return (503, fault.message),
        };
        let mut tally = self.tally.get();
        let mut reply = None;
        let now = js::now();
        let done = self.storage.transaction_sync(&mut || {
            let table = Table { sql: self.table()? };
            match shard::run(&table, Some(shards), batch, now, &mut tally) {
                Err(BatchError::Rows(thrown)) => return Err(thrown),
                other => reply = Some(other),
            }
            Ok(JsValue::UNDEFINED)
        });
        match (done, reply) {
            (Ok(_), Some(Ok(reply))) => {
                self.tally.set(tally);
                (200, reply)
            }
            (Ok(_), Some(Err(BatchError::Shards))) => {
                (409, format!("this deployment has {shards} shards"))
            }
            (Ok(_), _) => (400, "not a batch of version 1".into()),
            (Err(thrown), _) => {
                self.ready.set(false);
                (500, js::words(&thrown))
            }
        }
    }

    fn table(&self) -> Result<Sql, JsValue> {
        let sql = self.storage.sql();
        if !self.ready.get() {
            sql.exec(CREATE, &Array::new())?;
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
        self.armed.set(true);
        JsFuture::from(self.storage.set_alarm(js::number(at))?).await.map(drop)
    }

    /// Deletes what is over; everything, when that was the last.
    async fn sweep(&self) -> Result<(), JsValue> {
        self.armed.set(false);
        let now = js::now();
        let sql = self.table()?;
        sql.exec(SWEEP, &Array::of1(&js::number(now).into()))?;
        let next = js::first_value(&sql.exec(NEXT, &Array::new())?)?;
        match next.and_then(|next| next.as_f64()) {
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
        let found = js::first_value(&self.sql.exec(GET, &Array::of1(&key.into()))?)?;
        Ok(found.and_then(|record| record.as_string()))
    }

    fn put(&self, key: &str, record: &str, over_at: Timestamp, new: bool) -> Result<bool, JsValue> {
        if new && self.sql.database_size() > MOST_BYTES {
            return Ok(false);
        }
        let row = Array::of3(&key.into(), &record.into(), &js::number(over_at).into());
        self.sql.exec(PUT, &row)?;
        Ok(true)
    }

    fn delete(&self, key: &str) -> Result<(), JsValue> {
        self.sql.exec(DELETE, &Array::of1(&key.into())).map(drop)
    }
}
