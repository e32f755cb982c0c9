//! Exact rate limits, deduplication and burst alarms over a store that the host provides.
//!
//! The crate has no runtime, no clock and no network of its own. Everything that decides is synchronous
//! and pure: a step takes a record, an operation and the time, and answers a reply and the next record.
//! A [`Store`] makes steps atomic; the host brings the store and says what time it is.
//!
//! ```
//! use tidegate::{Limit, LimitOptions, Limits, MemoryTable, Millis, OnFull, Timestamp};
//!
//! let limit = Limit::new(&LimitOptions::new(2, Millis::from_ms(1_000)))?;
//! let mut table = MemoryTable::new(1_000, 0, OnFull::Deny);
//! let limiter = table.register(Limits::new(vec![limit])?);
//! let now = Timestamp::from_ms(1_700_000_000_000);
//! let (first, slot) = table.consume_new(limiter, 1, now);
//! assert!(first.allowed() && first.remaining == 1);
//! # let slot = slot.unwrap();
//! assert!(table.consume(limiter, slot, 1, now).unwrap().allowed());
//! assert!(!table.consume(limiter, slot, 1, now).unwrap().allowed());
//! # Ok::<(), tidegate::PolicyError>(())
//! ```

#![cfg_attr(bare, no_std)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

#[macro_use]
extern crate alloc;

pub mod burst;
pub mod dedup;
mod digest;
mod engine;
mod error;
pub mod guard;
mod ip;
#[cfg(any(test, feature = "worker"))]
mod json;
mod limit;
pub mod op;
mod store;
mod text;
mod time;

// Exported functions would become methods of the Worker's entrypoint, so its build leaves them out.
#[cfg(all(any(feature = "npm", feature = "npm-stores"), not(feature = "worker")))]
#[allow(unsafe_code, reason = "what wasm-bindgen generates")]
mod host;
#[cfg(all(any(feature = "npm", feature = "npm-stores"), not(feature = "worker")))]
#[allow(
    unsafe_code,
    unreachable_pub,
    reason = "exported names, statics of the only thread, and what wasm-bindgen generates"
)]
mod npm;
#[cfg(feature = "worker")]
#[allow(unsafe_code, unreachable_pub, reason = "what wasm-bindgen generates")]
mod worker;

pub use error::Error;
pub use ip::ip_key;
pub use limit::{
    Adders, Algorithm, Block, Decision, Delta, Entry, FixedWindow, LeakyBucket, Limit, LimitName,
    LimitOptions, LimitRecord, Limits, MAX_ADDERS, MAX_LIMITS, MAX_RECORD_CHARS, PolicyError,
    Reason, SHARES, Shape, Share, SlidingWindow, State,
};
pub use store::{
    Answer, Call, Cas, CasStore, Full, Key, Kind, LimiterId, MemoryTable, OnFull, Slot, Store,
    redis, shard, tier, wire,
};
#[cfg(not(bare))]
pub use store::{Limiter, MemoryStore};
pub use time::{Clock, Millis, Timestamp};
