//! The npm package's two modules: what every user has is the feature `npm`; stores with a conditional write, shards
//! and tiers are the feature `npm-stores`. What is exported takes and answers numbers, and needs no adapter; texts are
//! handed over in the [`exchange`]. Nothing of one module means anything to the other, so that what passes between
//! them is numbers and words of the Redis script.

mod alone;
mod exchange;
mod numbers;
mod questions;
mod replies;

#[cfg(feature = "npm-stores")]
mod cas;
#[cfg(feature = "npm")]
mod guard;
#[cfg(feature = "npm")]
mod memory;
#[cfg(feature = "npm")]
mod options;
#[cfg(feature = "npm-stores")]
mod seen;
#[cfg(feature = "npm-stores")]
mod shard;
#[cfg(feature = "npm")]
mod texts;
#[cfg(feature = "npm-stores")]
mod tier;

use crate::store::Slot;

/// Says that there is no slot, or that a slot is stale.
const NONE: u32 = u32::MAX;

/// The one that the standard library would bring, too.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// There is nobody to tell: the host learns that the module trapped.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

fn held(index: u32, generation: u32) -> Option<Slot> {
    (index != NONE).then_some(Slot { index, generation })
}
