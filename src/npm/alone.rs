//! A value that one thread has to itself.

use alloc::vec::Vec;
use core::cell::RefCell;

/// A value of the only thread.
pub(super) struct Alone<T>(pub(super) RefCell<T>);

/// SAFETY: the module has no shared memory and so only ever one thread. (A thread-local value would be the same, by
/// way of a function that is not inlined.)
#[cfg(not(target_feature = "atomics"))]
unsafe impl<T> Sync for Alone<T> {}

impl<T> Alone<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }
}

/// Values that JavaScript knows by their numbers.
impl<T> Alone<Vec<Option<T>>> {
    /// Runs on the value of that number; `None` once it was let go.
    #[inline(always)]
    pub(super) fn at<R>(&self, number: u32, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut places = self.0.try_borrow_mut().ok()?;
        Some(run(places.get_mut(number as usize)?.as_mut()?))
    }

    /// Keeps a value; answers its number.
    pub(super) fn place(&self, value: T) -> u32 {
        let Ok(mut places) = self.0.try_borrow_mut() else { return u32::MAX };
        let vacant = places.iter().position(Option::is_none);
        let number = vacant.unwrap_or(places.len());
        match places.get_mut(number) {
            Some(place) => *place = Some(value),
            None => places.push(Some(value)),
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Lets go of a value.
    pub(super) fn free(&self, number: u32) {
        drop(self.take(number));
    }

    /// Hands a value back.
    pub(super) fn take(&self, number: u32) -> Option<T> {
        self.0.try_borrow_mut().ok()?.get_mut(number as usize)?.take()
    }
}
