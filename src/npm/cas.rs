//! A host's store with a conditional write.

use wasm_bindgen::prelude::*;

use super::numbers::timestamp;
use crate::error::Error;
use crate::host::{Adapter, JsCas, fault};
use crate::op::Reply;
use crate::store::wire::{self, Replies};
use crate::store::{Call, CasStore, Key, Store};

/// Runs an operation, in the words of the Redis script, on the text that a key holds: the reply, as the script would
/// pack it. The adapter's shape has been checked; `now` is the time where it has no clock.
#[wasm_bindgen]
pub async fn run_operation(
    adapter: Adapter,
    key: String,
    words: String,
    now: f64,
) -> Result<String, JsValue> {
    let store = CasStore(JsCas::new(adapter, timestamp(now)));
    run(&store, &Key::joined(key), &words).await.map(packed).map_err(fault)
}

async fn run<S: Store>(store: &S, key: &Key, words: &str) -> Result<Reply, Error<S::Error>> {
    let op = wire::read(words).ok_or(Error::Unsupported("not an operation of version 1"))?;
    let answer = store.apply(&[Call { key, op: op.as_op() }]).await.pop();
    answer.unwrap_or(Err(Error::Corrupt))
}

fn packed(reply: Reply) -> String {
    let mut replies = Replies::default();
    replies.push::<&str>(&Ok(reply));
    replies.into_text()
}
