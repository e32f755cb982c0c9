//! Ids that are done: only "seen" is answered here, and "new" by the shared store alone.

use super::TRUSTED_FOR;
use crate::dedup::{self, Message, MessageOp, MessageReply};
use crate::store::Slot;
use crate::store::records::Records;
use crate::time::{Millis, Timestamp};

/// A longer result is fetched from the shared store every time.
const MOST_RESULT_BYTES: usize = 4_096;

#[derive(Clone, Debug, Default)]
struct Row {
    /// Questions under way.
    asked: u32,
    /// This node's own changes of the id: an answer from before the last one is not remembered.
    changes: u32,
    /// Until when a `first` would be told no.
    seen_until: Timestamp,
    /// What a claim would find.
    done: Option<Message>,
}

impl Row {
    fn over_at(&self) -> Timestamp {
        let done = self.done.as_ref().map_or(Timestamp::default(), Message::over_at);
        let now = if self.asked > 0 { Timestamp::from_ms(u64::MAX) } else { Timestamp::default() };
        now.max(done).max(self.seen_until)
    }
}

/// A question about an id that is under way.
#[derive(Clone, Copy, Debug)]
pub struct SeenAsk {
    slot: Option<Slot>,
    changes: u32,
    sent: Timestamp,
}

/// The ids that this process knows to be done.
pub struct Seen {
    rows: Records<Row>,
}

impl Seen {
    /// Remembers at most so many ids. Of others the shared store is asked.
    #[must_use]
    pub fn new(most_ids: u32) -> Self {
        Self { rows: Records::new(most_ids) }
    }

    /// What is known of the id, if that answers the operation.
    #[must_use]
    pub fn answer(&self, slot: Slot, op: &MessageOp, now: Timestamp) -> Option<MessageReply> {
        let row = self.rows.get(slot)?;
        match op {
            MessageOp::First { .. } if now < row.seen_until => Some(MessageReply::Flag(false)),
            MessageOp::First { .. } | MessageOp::Look | MessageOp::Claim { .. } => {
                let mut done = row.done.clone().filter(|done| now < done.over_at());
                done.is_some().then(|| dedup::step(&mut done, op, now).0)
            }
            _ => None,
        }
    }

    /// The shared store is going to be asked; answers the id's row.
    pub fn ask(
        &mut self,
        slot: Option<Slot>,
        op: &MessageOp,
        now: Timestamp,
    ) -> (SeenAsk, Option<Slot>) {
        let held = slot.and_then(|slot| self.rows.place(slot));
        let placed = match held {
            Some(slot) => Some(slot),
            None => {
                self.rows.put(None, Some(Row::default()), now, now, Row::over_at).ok().flatten()
            }
        };
        let mut changes = 0;
        if let Some(slot) = placed {
            self.rows.update(slot, Row::over_at, |row| {
                row.asked = row.asked.saturating_add(1);
                if forgets(op) {
                    row.forget();
                }
                changes = row.changes;
            });
        }
        (SeenAsk { slot: placed, changes, sent: now }, placed)
    }

    /// What came of it; `Flag(false)` when nobody knows.
    pub fn told(&mut self, ask: &SeenAsk, op: &MessageOp, reply: &MessageReply) {
        let Some(slot) = ask.slot else {
            return;
        };
        self.rows.update(slot, Row::over_at, |row| {
            row.asked = row.asked.saturating_sub(1);
            if forgets(op) {
                row.forget();
            } else if row.changes == ask.changes {
                row.remember(op, reply, ask.sent);
            }
        });
    }

    /// A row freed since last asked: the index has to forget it.
    pub fn freed(&mut self) -> Option<u32> {
        self.rows.take_freed().map(|(slot, _)| slot)
    }
}

const fn forgets(op: &MessageOp) -> bool {
    matches!(op, MessageOp::Forget | MessageOp::Put { .. } | MessageOp::Release { .. })
}

impl Row {
    fn forget(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        (self.seen_until, self.done) = (Timestamp::default(), None);
    }

    fn remember(&mut self, op: &MessageOp, reply: &MessageReply, sent: Timestamp) {
        let trusted = |ttl: Millis| sent.plus(ttl.min(TRUSTED_FOR));
        match (op, reply) {
            (MessageOp::First { ttl }, MessageReply::Flag(true)) => {
                self.seen_until = trusted(*ttl);
            }
            (MessageOp::Commit { ttl, result, payload, .. }, MessageReply::Flag(true)) => {
                let until = trusted(*ttl);
                let (payload, result) = (payload.clone(), result.clone());
                if result.as_ref().is_none_or(|result| result.len() <= MOST_RESULT_BYTES) {
                    self.done = Some(Message::Done { until, token: None, payload, result });
                }
            }
            // Of an id that another node finished, nobody told how long it stays.
            _ => {}
        }
    }
}
