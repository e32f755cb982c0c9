//! The index of a table: keys to slots, and back.
//!
//! Open addressing in cells of half a line of the processor's cache, with short keys in place: a decision on a key waits
//! for one line of cells, which says where its row is, and the text of a long key.

use core::hash::{BuildHasher, Hasher};
#[cfg(target_family = "wasm")]
pub(super) use std::hash::RandomState;

#[cfg(not(target_family = "wasm"))]
pub(super) use foldhash::fast::RandomState;

use super::Slot;
use crate::store::key::Key;

/// What a store's hashes begin with, different in each: nobody who does not know it can choose keys that meet.
#[derive(Clone, Default)]
pub(super) struct Seed(RandomState);

impl Seed {
    #[inline]
    pub(super) fn hash(&self, bytes: &[u8]) -> u32 {
        let mut hasher = self.0.build_hasher();
        hasher.write(bytes);
        #[allow(clippy::cast_possible_truncation, reason = "half of its bits are as good")]
        let half = hasher.finish() as u32;
        half
    }

    pub(super) fn sought<'a>(&self, key: &'a Key) -> Sought<'a> {
        let (head, own) = key.parts();
        self.sought_parts(head, self.hash(head), own)
    }

    /// A key of a head, whose hash is known, and of the caller's own text behind it, where that is plain.
    #[inline]
    pub(super) fn sought_parts<'a>(&self, head: &'a [u8], hash: u32, own: &'a [u8]) -> Sought<'a> {
        Sought { hash: hash ^ self.hash(own), head, own }
    }
}

/// A key that is looked for, in its two parts.
pub(super) struct Sought<'a> {
    hash: u32,
    head: &'a [u8],
    own: &'a [u8],
}

#[derive(Default)]
pub(super) struct Index {
    /// A power of two of them, or none; at most three in four in use.
    cells: Vec<Cell>,
    used: usize,
    /// The way back: the hash of each slot's key.
    hashes: Vec<u32>,
}

impl Index {
    const FEWEST_CELLS: usize = 16;

    #[inline(always)]
    pub(super) fn get(&self, key: &Sought<'_>) -> Option<Slot> {
        let slot = self.cells.get(self.find(key)?)?.slot()?;
        // Whatever is there: the index is always told which slots were freed.
        Some(Slot { index: slot, generation: Slot::ANY })
    }

    pub(super) fn set(&mut self, key: &Sought<'_>, slot: Slot) {
        let index = slot.index as usize;
        if self.hashes.len() <= index {
            self.hashes.resize(index.saturating_add(1), 0);
        }
        if let Some(hash) = self.hashes.get_mut(index) {
            *hash = key.hash;
        }
        match self.find(key).and_then(|at| self.cells.get_mut(at)) {
            Some(cell) => *cell = Cell::of(key, slot.index),
            None => self.add(Cell::of(key, slot.index), key.hash),
        }
    }

    pub(super) fn forget(&mut self, slot: u32) {
        let hash = self.hash_of(slot);
        if let Some(at) = self.search(hash, |cell| cell.slot() == Some(slot)) {
            self.used = self.used.saturating_sub(1);
            self.vacate(at);
        }
    }

    fn hash_of(&self, slot: u32) -> u32 {
        self.hashes.get(slot as usize).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn find(&self, key: &Sought<'_>) -> Option<usize> {
        self.search(key.hash, |cell| cell.is(key))
    }

    /// The first cell of that hash's, up to a vacant one, that is wanted.
    #[inline(always)]
    fn search(&self, hash: u32, wanted: impl Fn(&Cell) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            match self.cells.get(at)? {
                Cell::Vacant => return None,
                cell if wanted(cell) => return Some(at),
                _ => at = self.after(at),
            }
        }
    }

    fn add(&mut self, cell: Cell, hash: u32) {
        self.used = self.used.saturating_add(1);
        if self.used > self.cells.len().saturating_sub(self.cells.len() / 4) {
            self.grow();
        }
        self.place(cell, hash);
    }

    fn grow(&mut self) {
        let count = self.cells.len().saturating_mul(2).max(Self::FEWEST_CELLS);
        let cells = core::iter::repeat_with(Cell::default).take(count).collect();
        for cell in core::mem::replace(&mut self.cells, cells) {
            if let Some(slot) = cell.slot() {
                self.place(cell, self.hash_of(slot));
            }
        }
    }

    fn place(&mut self, cell: Cell, hash: u32) {
        let mut at = self.home(hash);
        while let Some(there) = self.cells.get_mut(at) {
            if matches!(there, Cell::Vacant) {
                *there = cell;
                return;
            }
            at = self.after(at);
        }
    }

    /// Vacates a cell, and moves up those behind it that would not be found any more.
    fn vacate(&mut self, at: usize) {
        self.take(at);
        let (mut hole, mut at) = (at, self.after(at));
        while let Some(slot) = self.cells.get(at).and_then(Cell::slot) {
            let home = self.home(self.hash_of(slot));
            if self.steps(home, at) >= self.steps(hole, at) {
                let cell = self.take(at);
                if let Some(place) = self.cells.get_mut(hole) {
                    *place = cell;
                }
                hole = at;
            }
            at = self.after(at);
        }
    }

    fn take(&mut self, at: usize) -> Cell {
        self.cells.get_mut(at).map(core::mem::take).unwrap_or_default()
    }

    const fn home(&self, hash: u32) -> usize {
        hash as usize & self.mask()
    }

    const fn after(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    /// How many steps lead from one cell to another.
    const fn steps(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    const fn mask(&self) -> usize {
        self.cells.len().wrapping_sub(1)
    }
}

/// A key and its slot. Aligned, so that none lies across two lines of the cache.
#[derive(Default)]
#[repr(align(32))]
enum Cell {
    #[default]
    Vacant,
    Short {
        len: u8,
        bytes: [u8; SHORT],
        slot: u32,
    },
    Long {
        hash: u32,
        slot: u32,
        bytes: Box<[u8]>,
    },
}

/// With all else of a cell, 32 bytes.
const SHORT: usize = 26;

impl Cell {
    fn of(key: &Sought<'_>, slot: u32) -> Self {
        let len = key.head.len().saturating_add(key.own.len());
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..len), u8::try_from(len)) {
            (Some(place), Ok(len)) => {
                let text = key.head.iter().chain(key.own);
                place.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
                Self::Short { len, bytes, slot }
            }
            _ => Self::Long { hash: key.hash, slot, bytes: [key.head, key.own].concat().into() },
        }
    }

    #[inline(always)]
    const fn slot(&self) -> Option<u32> {
        match self {
            Self::Vacant => None,
            Self::Short { slot, .. } | Self::Long { slot, .. } => Some(*slot),
        }
    }

    #[inline(always)]
    fn is(&self, key: &Sought<'_>) -> bool {
        let text = match self {
            Self::Short { len, bytes, .. } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long { hash, bytes, .. } if *hash == key.hash => bytes,
            _ => return false,
        };
        let parts = text.split_at_checked(key.head.len());
        parts.is_some_and(|(head, own)| same(own, key.own) && same(head, key.head))
    }
}

/// Whether they are equal. Short ones are compared in place, as the numbers that their first and last bytes are: to call
/// what compares long ones takes longer than that.
#[inline]
fn same(some: &[u8], other: &[u8]) -> bool {
    some.len() == other.len()
        && match some.len() {
            ..4 => some.iter().eq(other),
            4..8 => ends::<4>(some) == ends::<4>(other),
            8..=16 => ends::<8>(some) == ends::<8>(other),
            17.. => some == other,
        }
}

#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (bytes.first_chunk(), bytes.last_chunk())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Few hashes, so that keys meet, and cells that lie behind each other run over the end.
    fn sought(key: u32, own: &str) -> Sought<'_> {
        Sought { hash: u32::MAX - key % 5, head: b"tg:l:", own: own.as_bytes() }
    }

    fn of(index: &Index, own: &str, key: u32) -> Option<u32> {
        index.get(&sought(key, own)).map(|slot| slot.index)
    }

    #[test]
    fn an_index_is_a_map_that_also_knows_the_way_back() {
        let act = (any::<bool>(), 0..40_u32);
        // A case that fails is printed, and not kept in the tree.
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(acts in proptest::collection::vec(act, 1..300))| {
            let names: Vec<_> = (0..40).map(|key| "k".repeat(key)).collect();
            let mut index = Index::default();
            let mut slots: HashMap<u32, u32> = HashMap::new();
            for (adds, key) in acts {
                // A slot is given to one key at a time.
                let slot = 39 - key;
                if adds {
                    index.set(&sought(key, &names[key as usize]), Slot { index: slot, generation: 1 });
                    slots.insert(key, slot);
                } else {
                    index.forget(slot);
                    slots.remove(&key);
                }
                for (key, name) in (0..).zip(&names) {
                    prop_assert_eq!(of(&index, name, key), slots.get(&key).copied());
                }
                prop_assert_eq!(index.used, slots.len());
            }
        });
    }

    #[test]
    fn texts_that_differ_in_one_byte_are_not_the_same() {
        for len in 0..40 {
            let text = vec![b'k'; len];
            assert!(same(&text, &text.clone()) && !same(&text, &vec![b'k'; len + 1]));
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'l';
                assert!(!same(&text, &other), "at {at} of {len}");
            }
        }
    }

    #[test]
    fn a_key_is_the_same_in_one_piece_and_in_two() {
        let seed = Seed::default();
        for own in ["user:42", "", "::", &"k".repeat(150)] {
            let key = Key::new("a:b", crate::store::Kind::Limit, own);
            let (head, whole) = (Key::head("a:b", crate::store::Kind::Limit), seed.sought(&key));
            let head = head.as_bytes();
            let parts = seed.sought_parts(head, seed.hash(head), own.as_bytes());
            assert_eq!(whole.hash, parts.hash);
            assert!(Cell::of(&whole, 1).is(&parts) && Cell::of(&parts, 1).is(&whole));
        }
    }
}
