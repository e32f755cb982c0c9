//! Where the state is: in Durable Objects, or in Redis over fetch where one is named.

use wasm_bindgen::JsValue;

use super::call::Call;
use super::fault::Fault;
use super::objects::Objects;
use super::rest::Rest;
use crate::op::Reply;

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

    /// Runs the calls, those of one key in order; one reply for each.
    pub(crate) async fn apply(&self, calls: &[Call]) -> Vec<Result<Reply, Fault>> {
        match self {
            Self::Objects(objects) => objects.apply(calls).await,
            Self::Rest(rest) => rest.apply(calls).await,
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
