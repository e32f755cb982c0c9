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
impl<T> Alone<Vec<Option<T>>> {
    /// Runs on the value of that number; `None` once it was let go.
    #[inline(always)]
    pub(super) fn at<R>(&self, number: u32, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.on(|places| Some(run(places.get_mut(number as usize)?.as_mut()?)))
    }

    /// Keeps a value; answers its number.
    pub(super) fn place(&self, value: T) -> u32 {
        self.on(|places| {
            let vacant = places.iter().position(Option::is_none);
            let number = vacant.unwrap_or(places.len());
            match places.get_mut(number) {
                Some(place) => *place = Some(value),
                None => places.push(Some(value)),
            }
            u32::try_from(number).unwrap_or(u32::MAX)
        })
    }

    /// Lets go of a value.
    pub(super) fn free(&self, number: u32) {
        drop(self.on(|places| places.get_mut(number as usize).and_then(Option::take)));
    }
}
