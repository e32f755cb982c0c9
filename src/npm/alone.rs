//! A value that one thread has to itself.

use alloc::vec::Vec;
use core::cell::UnsafeCell;

/// A value of the only thread, and of one call at a time: the module imports nothing, so that no call comes in while
/// another is under way, and what runs on a value never asks for the same one.
///
/// No flag says that it is in use. A call that JavaScript's full stack interrupts would leave it set, and the value would
/// be lost to everybody for good.
pub(super) struct Alone<T>(UnsafeCell<T>);

/// SAFETY: the module has no shared memory and so only ever one thread. (A thread-local value would be the same, by
/// way of a function that is not inlined.)
#[cfg(not(target_feature = "atomics"))]
unsafe impl<T> Sync for Alone<T> {}

impl<T> Alone<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Runs on the value.
    #[inline(always)]
    pub(super) fn on<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: nobody else has it, as said above.
        run(unsafe { &mut *self.0.get() })
    }
}

/// Values that JavaScript knows by their numbers.
pub(super) struct Numbered<T> {
    values: Vec<Option<T>>,
    /// The numbers of those that were let go.
    vacant: Vec<u32>,
}

impl<T> Numbered<T> {
    pub(super) const fn new() -> Self {
        Self { values: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Alone<Numbered<T>> {
    /// Runs on the value of that number; `None` once it was let go.
    #[inline(always)]
    pub(super) fn at<R>(&self, number: u32, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.on(|all| Some(run(all.values.get_mut(number as usize)?.as_mut()?)))
    }

    /// Keeps a value; answers its number.
    pub(super) fn place(&self, value: T) -> u32 {
        self.on(|all| {
            let number = all.vacant.pop().unwrap_or_else(|| {
                all.values.push(None);
                u32::try_from(all.values.len()).unwrap_or(0).saturating_sub(1)
            });
            if let Some(place) = all.values.get_mut(number as usize) {
                *place = Some(value);
            }
            number
        })
    }

    /// Lets go of a value.
    pub(super) fn free(&self, number: u32) {
        self.on(|all| {
            if all.values.get_mut(number as usize).and_then(Option::take).is_some() {
                all.vacant.push(number);
            }
        });
    }
}
