//! Limits by key in a memory store, for who asks about many keys.

use core::ops::Deref;

use super::index::Sought;
use super::{LimiterId, MemoryStore};
use crate::limit::{Decision, Limits, Reason};
use crate::store::{Key, Kind};
use crate::time::Timestamp;

/// Decides on the keys of one prefix under the same limits, in a [`MemoryStore`] that it borrows or shares: `S` is
/// `&MemoryStore` or `Arc<MemoryStore>`.
///
/// What [`MemoryStore::call`] finds out on each call, it knows: which limits they are, and how the keys begin. Both
/// mean the same keys, so what a Limiter has no method for is a call on `Key::new(prefix, Kind::Limit, key)`.
///
/// ```
/// use std::time::Instant;
/// use tidegate::{Limit, LimitOptions, Limiter, Limits, MemoryStore, Millis, OnFull, Reason, Timestamp};
///
/// let start = Instant::now();
/// let now = move || Timestamp::from_ms(start.elapsed().as_millis() as u64);
/// let store = MemoryStore::new(1_000_000, OnFull::Deny, now);
///
/// let limit = Limit::new(&LimitOptions::new(2, Millis::from_ms(60_000)))?;
/// let limiter = Limiter::new(&store, "logins", &Limits::new(vec![limit])?);
/// assert_eq!(limiter.consume("user:42", 1).remaining, 1);
/// assert_eq!(limiter.try_consume("user:42", 1), Reason::Ok);
/// assert_eq!(limiter.try_consume("user:42", 1), Reason::Limited);
/// assert_eq!(limiter.try_consume("user:43", 1), Reason::Ok);
/// # Ok::<(), tidegate::PolicyError>(())
/// ```
pub struct Limiter<S> {
    store: S,
    id: LimiterId,
    prefix: Box<str>,
    head: Box<[u8]>,
    hash: u32,
}

impl<S, C> Limiter<S>
where
    S: Deref<Target = MemoryStore<C>>,
    C: Fn() -> Timestamp,
{
    /// The limits of the keys of that prefix. They stay known to the store.
    #[must_use]
    pub fn new(store: S, prefix: &str, limits: &Limits) -> Self {
        let head = Key::head(prefix, Kind::Limit).into_bytes().into_boxed_slice();
        let hash = store.seed().hash(&head);
        let id = store.locked(|inner, _| inner.limiter(limits));
        Self { store, id, prefix: prefix.into(), head, hash }
    }

    /// Charges `cost` to the key, or tells when it fits.
    pub fn consume(&self, key: &str, cost: u64) -> Decision {
        let escaped = self.escaped(key);
        let key = self.sought(key, escaped.as_ref());
        self.store.locked(|inner, now| inner.consume(&key, self.id, cost, now))
    }

    /// As [`consume`](Self::consume), for who asks no more than whether, and why not.
    pub fn try_consume(&self, key: &str, cost: u64) -> Reason {
        let escaped = self.escaped(key);
        let key = self.sought(key, escaped.as_ref());
        self.store.locked(|inner, now| inner.try_consume(&key, self.id, cost, now))
    }

    /// The key of a text that does not stand in it as it is.
    #[inline]
    fn escaped(&self, key: &str) -> Option<Key> {
        (!Key::is_plain(key)).then(|| Key::new(&self.prefix, Kind::Limit, key))
    }

    #[inline]
    fn sought<'a>(&'a self, key: &'a str, escaped: Option<&'a Key>) -> Sought<'a> {
        let seed = self.store.seed();
        match escaped {
            Some(key) => seed.sought(key),
            None => seed.sought_parts(&self.head, self.hash, key.as_bytes()),
        }
    }
}
