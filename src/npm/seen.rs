//! The ids that this process knows to be done.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::numbers::{number, timestamp};
use super::{NONE, held};
use crate::dedup::{MessageOp, MessageReply};
use crate::store::tier::{Seen, SeenAsk};
use crate::store::{Slot, wire};

/// The ids that this process knows to be done.
#[wasm_bindgen]
pub struct SeenIds(Seen);

#[wasm_bindgen]
impl SeenIds {
    /// Remembers at most so many.
    #[wasm_bindgen(constructor)]
    pub fn new(most_ids: u32) -> SeenIds {
        SeenIds(Seen::new(most_ids))
    }

    /// What is known of the id, if that answers the call, which is in the words of the Redis script.
    pub fn answer(&self, index: u32, call: &str, now: f64) -> JsValue {
        let slot = Slot { index, generation: Slot::ANY };
        let op = wire::message(call);
        let reply = op.and_then(|op| self.0.answer(slot, &op, timestamp(now)));
        reply.map_or(JsValue::UNDEFINED, told)
    }

    /// The shared store is going to be asked. Words that make no sense may change anything there.
    pub fn ask(&mut self, index: u32, call: &str, now: f64) -> SeenQuestion {
        let op = wire::message(call).unwrap_or(MessageOp::Forget);
        let (ask, slot) = self.0.ask(held(index, Slot::ANY), &op, timestamp(now));
        SeenQuestion { ask, op, slot: slot.map_or(NONE, |slot| slot.index) }
    }

    /// Whether the call did what it asked for; false when nobody knows. The question is over.
    pub fn told(&mut self, question: SeenQuestion, yes: bool) {
        self.0.told(&question.ask, &question.op, &MessageReply::Flag(yes));
    }

    /// A slot freed since last asked, or NONE.
    pub fn freed(&mut self) -> u32 {
        self.0.freed().unwrap_or(NONE)
    }
}

/// A call about an id that is under way.
#[wasm_bindgen]
pub struct SeenQuestion {
    ask: SeenAsk,
    op: MessageOp,
    slot: u32,
}

#[wasm_bindgen]
impl SeenQuestion {
    /// The id's slot, or NONE.
    pub fn slot(&self) -> u32 {
        self.slot
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    status: &'static str,
    retry_after_ms: f64,
    result: Option<Box<str>>,
}

fn told(reply: MessageReply) -> JsValue {
    let (mut retry_after_ms, mut stored) = (0.0, None);
    let status = match reply {
        MessageReply::Flag(true) => "yes",
        MessageReply::Flag(false) => "no",
        MessageReply::Absent => "absent",
        MessageReply::Fresh => "fresh",
        MessageReply::Mismatch => "mismatch",
        MessageReply::InProgress { retry_after } => {
            retry_after_ms = number(retry_after.as_ms());
            "in-progress"
        }
        MessageReply::Duplicate { result } => {
            stored = result;
            "duplicate"
        }
    };
    let told = Told { status, retry_after_ms, result: stored };
    serde_wasm_bindgen::to_value(&told).unwrap_or(JsValue::UNDEFINED)
}
