//! The store itself, for those who run the core elsewhere: batches as [`shard`] has them, for whichever shards their
//! keys are of.

use super::auth::Access;
use super::fault::Fault;
use super::store::{Backend, Step};
use crate::op::OwnedOp;
use crate::store::wire::Replies;
use crate::store::{Key, shard};

/// The longest result, 64 KiB of JSON, may have six characters for each of its own when it is ASCII.
pub(crate) const MOST_BYTES: u32 = 512 * 1_024;
const MOST_STEPS: usize = 256;
/// Keys are shorter, whatever they are made of.
const MOST_KEY_BYTES: usize = 1_024;

/// The reply to a batch.
pub(crate) async fn answer(batch: &str, access: &Access, store: &Backend) -> Result<String, Fault> {
    let expected = "\"1;\" and 1 to 256 lines of a key, a tab and an operation";
    let lines =
        shard::read(batch).filter(|(rest, lines)| rest.is_empty() && lines.len() <= MOST_STEPS);
    let (_, lines) = lines.ok_or_else(|| Fault::argument("body", expected))?;
    let steps = lines.into_iter().map(|(key, op)| step(key, op, access));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    let mut replies = Replies::default();
    for reply in store.apply(&steps.iter().collect::<Vec<_>>()).await {
        replies.push(&reply);
    }
    Ok(replies.into_texts().join("\n"))
}

fn step(key: &str, op: OwnedOp, access: &Access) -> Result<Step, Fault> {
    let printable = key.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if !printable || !(1..=MOST_KEY_BYTES).contains(&key.len()) {
        return Err(Fault::argument("key", "1 to 1024 characters of printable ASCII"));
    }
    let key = Key::joined(key.into());
    match &access.prefix {
        Some(bound) if !key.is_under(bound) => Err(Fault::outside(bound, "key")),
        _ => Ok(Step { key, op }),
    }
}
