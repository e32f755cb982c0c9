//! The async driver: carries bytes between a step and a store, and decides nothing.

use crate::error::Error;
use crate::store::{Answer, Call, Cas};

/// Read, step, write if nobody else wrote; again, a bounded number of times, if somebody did.
pub(crate) async fn swap<C: Cas>(cas: &C, call: &Call<'_>) -> Answer<C::Error> {
    let key = call.key.as_str();
    for _ in 0..crate::store::MAX_TRIES {
        let text = cas.get(key).await?;
        let (now, clock) = cas.now().await?;
        let plan = crate::store::plan(text.as_deref(), &call.op, now, clock)?;
        let Some((next, ttl)) = plan.write else {
            return Ok(plan.reply);
        };
        if cas.compare_and_set(key, text.as_deref(), &next, ttl).await? {
            return Ok(plan.reply);
        }
    }
    Err(Error::Contention)
}
