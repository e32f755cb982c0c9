//! Rows addressed by slot and generation: bounded, without timers, growing and forgetting a little at a
//! time. Whoever finds rows by key keeps an index beside it, and is told which slots were freed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::time::Timestamp;

/// Where a row is, and which of the rows that have been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The place.
    pub index: u32,
    /// Differs each time the place is used anew.
    pub generation: u32,
}

impl Slot {
    /// The generation of an index that is always told which slots were freed: whatever is there.
    pub const ANY: u32 = u32::MAX;

    pub(super) const fn holds(self, generation: u32) -> bool {
        self.generation == Self::ANY || self.generation == generation
    }
}

/// Rows are allocated this many at a time, so that growing never moves a row.
const CHUNK_ROWS: usize = 4_096;
/// How many rows each insertion looks at for what is over.
const SWEEP_ROWS: u32 = 2;
/// How many chunks one call looks through for room: a million rows, a few milliseconds. In a larger table whose
/// bounds have all gone stale a new key may be refused although one is whole; the next call looks further.
const MAX_SCANS: usize = 256;
/// The end of the free list.
const NO_SLOT: u32 = u32::MAX;

/// What a table holds. A row keeps its generation, which is odd while it is in use.
pub(crate) trait Row: Sized {
    /// A row that is not in use.
    fn vacant(generation: u32, next_free: u32) -> Self;
    fn generation(&self) -> u32;
    fn set_generation(&mut self, generation: u32);
    /// Of a vacant row: the next one on the free list.
    fn next_free(&self) -> u32;

    #[inline(always)]
    fn in_use(&self) -> bool {
        self.generation() & 1 == 1
    }
}

struct Chunk<R> {
    rows: Box<[R]>,
    /// No row here is over before this.
    horizon: Timestamp,
    /// When the horizon was last found exactly.
    scanned_at: Option<Timestamp>,
}

/// The table is full; the earliest point at which a row may be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// When to try again.
    pub until: Timestamp,
}

pub(crate) struct Slots<R> {
    chunks: Vec<Chunk<R>>,
    first_free: u32,
    len: u32,
    rows: u32,
    most_rows: u32,
    hand: u32,
    /// Up to how many rows there is memory at hand.
    reserved: usize,
    freed: Vec<(u32, R)>,
}

impl<R: Row> Slots<R> {
    pub(crate) fn new(most_rows: u32) -> Self {
        Self {
            chunks: Vec::new(),
            first_free: NO_SLOT,
            len: 0,
            rows: 0,
            most_rows: most_rows.clamp(1, NO_SLOT.saturating_sub(1)),
            hand: 0,
            reserved: 0,
            freed: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// A slot freed since last asked, with the row that was in it.
    pub(crate) fn take_freed(&mut self) -> Option<(u32, R)> {
        self.freed.pop()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&R> {
        let (chunk, row) = place(slot);
        self.chunks.get(chunk)?.rows.get(row).filter(|row| row.in_use())
    }

    /// The row, to be changed: what was found of its chunk's horizon is only a bound from now on.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut R> {
        let (chunk, row) = place(slot);
        let chunk = self.chunks.get_mut(chunk)?;
        chunk.scanned_at = None;
        chunk.rows.get_mut(row).filter(|row| row.in_use())
    }

    /// Makes room for another row, if there is none.
    pub(crate) fn room(
        &mut self,
        now: Timestamp,
        ends: &impl Fn(&R) -> Timestamp,
    ) -> Result<(), Full> {
        if self.first_free == NO_SLOT && self.rows < self.most_rows {
            self.grow();
        }
        if self.first_free == NO_SLOT { self.reclaim(now, ends) } else { Ok(()) }
    }

    /// Puts a row in, over at `over_at`; looks at a few others first, and at all when there is no room.
    pub(crate) fn insert(
        &mut self,
        row: R,
        over_at: Timestamp,
        now: Timestamp,
        ends: impl Fn(&R) -> Timestamp,
    ) -> Result<u32, Full> {
        self.sweep(now, &ends);
        self.room(now, &ends)?;
        let slot = self.first_free;
        let (chunk, at) = place(slot);
        let full = Full { until: now };
        let chunk = self.chunks.get_mut(chunk).ok_or(full)?;
        let cell = chunk.rows.get_mut(at).ok_or(full)?;
        let generation = cell.generation().wrapping_add(1);
        self.first_free = cell.next_free();
        *cell = row;
        cell.set_generation(generation);
        (chunk.horizon, chunk.scanned_at) = (chunk.horizon.min(over_at), None);
        self.len = self.len.saturating_add(1);
        Ok(slot)
    }

    /// A row's end came nearer (a refund, an unblock): its chunk must not be passed over.
    pub(crate) fn hasten(&mut self, slot: u32, over_at: Timestamp) {
        if let Some(chunk) = self.chunks.get_mut(place(slot).0) {
            chunk.horizon = chunk.horizon.min(over_at);
        }
    }

    /// Frees a row and notes it for the index.
    pub(crate) fn remove(&mut self, slot: u32) {
        let first_free = self.first_free;
        let Some(row) = self.get_mut(slot) else {
            return;
        };
        let vacant = R::vacant(row.generation().wrapping_add(1), first_free);
        let removed = core::mem::replace(row, vacant);
        self.first_free = slot;
        self.len = self.len.saturating_sub(1);
        self.freed.push((slot, removed));
    }

    fn sweep(&mut self, now: Timestamp, ends: &impl Fn(&R) -> Timestamp) {
        for _ in 0..SWEEP_ROWS.min(self.rows) {
            self.hand = if self.hand.saturating_add(1) < self.rows {
                self.hand.saturating_add(1)
            } else {
                0
            };
            self.remove_over(self.hand, now, ends);
        }
    }

    /// Frees the row if it is over; else answers when it will be.
    fn remove_over(
        &mut self,
        slot: u32,
        now: Timestamp,
        ends: &impl Fn(&R) -> Timestamp,
    ) -> Option<Timestamp> {
        let end = ends(self.get(slot)?);
        if end > now {
            return Some(end);
        }
        self.remove(slot);
        None
    }

    /// Frees every row that is over in the chunk whose rows end first.
    fn reclaim(&mut self, now: Timestamp, ends: &impl Fn(&R) -> Timestamp) -> Result<(), Full> {
        let mut scans = 0_usize;
        loop {
            let nearest = self.chunks.iter().enumerate().min_by_key(|(_, chunk)| chunk.horizon);
            let Some((index, chunk)) = nearest else {
                return Err(Full { until: now });
            };
            let known = chunk.scanned_at == Some(now) && chunk.horizon > now;
            if known || scans == MAX_SCANS {
                return Err(Full { until: chunk.horizon });
            }
            scans = scans.saturating_add(1);
            let first = index.saturating_mul(CHUNK_ROWS);
            let rows = chunk.rows.len();
            let mut horizon = Timestamp::from_ms(u64::MAX);
            for slot in first..first.saturating_add(rows) {
                let slot = u32::try_from(slot).unwrap_or(NO_SLOT);
                if let Some(end) = self.remove_over(slot, now, ends) {
                    horizon = horizon.min(end);
                }
            }
            if let Some(chunk) = self.chunks.get_mut(index) {
                (chunk.horizon, chunk.scanned_at) = (horizon, Some(now));
            }
            if self.first_free != NO_SLOT {
                return Ok(());
            }
        }
    }

    fn grow(&mut self) {
        let first = self.rows;
        let room =
            self.most_rows.saturating_sub(first).min(u32::try_from(CHUNK_ROWS).unwrap_or(NO_SLOT));
        let end = first.saturating_add(room);
        let vacant = |slot: u32| {
            let next = slot.saturating_add(1);
            R::vacant(0, if next < end { next } else { NO_SLOT })
        };
        self.reserve();
        let rows = (first..end).map(vacant).collect();
        self.chunks.push(Chunk { rows, horizon: Timestamp::from_ms(u64::MAX), scanned_at: None });
        self.rows = end;
        self.first_free = first;
    }

    /// Has the allocator ask for memory by eighths of the table, and not by chunks: JavaScript takes each growth
    /// of WebAssembly memory for an allocation of all of it, and collects its garbage.
    fn reserve(&mut self) {
        let rows = self.rows as usize;
        if !cfg!(target_family = "wasm") || rows < self.reserved {
            return;
        }
        let more = (rows / 8).max(CHUNK_ROWS);
        self.reserved = rows.saturating_add(more);
        // Freed at once, and the allocator keeps it: memory of WebAssembly is never given back.
        drop(core::hint::black_box(Vec::<R>::with_capacity(more)));
    }
}

#[inline(always)]
const fn place(slot: u32) -> (usize, usize) {
    let slot = slot as usize;
    (slot / CHUNK_ROWS, slot % CHUNK_ROWS)
}
