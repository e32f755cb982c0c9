//! The store contract.
//!
//! A store makes the steps of [`op`](crate::op) atomic on a key, each in its own way, and answers one
//! reply per call, in order. What it owes:
//!
//! - calls on one key take effect one after the other, over everyone who shares the store;
//! - a call that fails has its own error, and its neighbours their replies;
//! - what is written lives at least as long as the step says, and never without an end;
//! - what it finds and does not understand is an error, never an empty state.

mod cas;
mod key;
mod memory;
mod records;
pub mod redis;
pub mod shard;
mod slots;
pub mod tier;
pub mod wire;

use alloc::vec::Vec;

pub use cas::{Cas, CasStore};
pub(crate) use cas::{MAX_TRIES, plan};
#[cfg(any(test, feature = "worker"))]
pub(crate) use key::push_wtf8;
pub use key::{Key, Kind};
#[cfg(not(bare))]
pub use memory::{Limiter, MemoryStore};
pub use memory::{LimiterId, MemoryTable, OnFull};
pub use slots::{Full, Slot};

use core::future::Future;

use crate::error::Error;
use crate::op::{Op, Reply};

/// An operation and the key it is for.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The key.
    pub key: &'a Key,
    /// The operation.
    pub op: Op<'a>,
}

/// What a store answers to one call.
pub type Answer<E> = Result<Reply, Error<E>>;

/// Where records are kept. See the module's text for the contract.
pub trait Store {
    /// The host's own error.
    type Error;

    /// Runs the calls, each atomically, those of one key in order; answers one reply for each.
    fn apply(&self, calls: &[Call<'_>]) -> impl Future<Output = Vec<Answer<Self::Error>>>;
}
