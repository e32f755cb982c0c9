//! The npm package's two modules, each a build of its own. What every user has is the feature `npm`: it takes and
//! answers numbers, and needs neither an adapter nor the standard library; texts are handed over in the [`exchange`].
//! Stores with a conditional write, shards and tiers, which wait for a database, are the feature `npm-stores`: classes
//! of wasm-bindgen. What passes between the two is numbers, and words of the Redis script.

#[cfg(bare)]
mod alone;
#[cfg(bare)]
mod exchange;
#[cfg(bare)]
mod guard;
#[cfg(bare)]
mod memory;
#[cfg(bare)]
mod options;
#[cfg(bare)]
mod texts;

#[cfg(feature = "npm-stores")]
mod cas;
#[cfg(feature = "npm-stores")]
mod seen;
#[cfg(feature = "npm-stores")]
mod shard;
#[cfg(feature = "npm-stores")]
mod tier;

mod questions;
mod replies;

use crate::host::numbers;
use crate::store::Slot;

/// Says that there is no slot, or that a slot is stale.
const NONE: u32 = u32::MAX;

/// The one that the standard library would bring, too.
#[cfg(bare)]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// There is nobody to tell: the host learns that the module trapped.
#[cfg(bare)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

fn held(index: u32, generation: u32) -> Option<Slot> {
    (index != NONE).then_some(Slot { index, generation })
}
