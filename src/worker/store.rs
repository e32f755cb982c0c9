//! Where the state is: in Durable Objects, or in Redis over fetch where one is named.

use wasm_bindgen::JsValue;

use super::fault::Fault;
use super::objects::Objects;
use super::rest::Rest;
use crate::op::OwnedOp;
use crate::store::Key;
use crate::store::redis::Answer;

/// One operation on one key.
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) op: OwnedOp,
}

/// The store of a deployment.
pub(crate) enum Backend {
    Objects(Objects),
    Rest(Rest),
}

impl Backend {
    pub(crate) fn of(env: &JsValue) -> Result<Self, Fault> {
        match Rest::of(env)? {
            Some(rest) => Ok(Self::Rest(rest)),
            None => Objects::of(env).map(Self::Objects),
        }
    }

    /// Runs the steps, those of one key in order; one answer for each.
    pub(crate) async fn apply(&self, steps: &[&Step]) -> Vec<Answer> {
        match self {
            Self::Objects(objects) => objects.apply(steps).await,
            Self::Rest(rest) => rest.apply(steps).await,
        }
    }

    /// What the shards have counted.
    pub(crate) async fn tallies(&self) -> Result<Vec<String>, Fault> {
        match self {
            Self::Objects(objects) => objects.tallies().await,
            Self::Rest(_) => Err(Fault::new(404, "not_found", "Redis counts for itself")),
        }
    }
}
