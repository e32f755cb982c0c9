//! The index of a table: keys to slots, and back.
//!
//! Open addressing in cells of eight bytes, and short keys in place, by slot: a decision on a key waits for one line
//! of cells, then for the key's text and its row, which are of one number and so come at once.

use core::hash::{BuildHasher, Hasher};
#[cfg(target_family = "wasm")]
use std::hash::RandomState;

#[cfg(not(target_family = "wasm"))]
use foldhash::fast::RandomState;

use super::Slot;
use crate::store::key::Key;

/// What a store's hashes begin with, a secret: nobody can choose keys that meet.
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
        self.sought_text(key.as_str().as_bytes())
    }

    fn sought_text<'a>(&self, text: &'a [u8]) -> Sought<'a> {
        let (head, own) = Key::parts(text);
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

#[derive(Clone, Copy)]
struct Cell {
    /// Says where the key is looked for first. Two keys may share it: what tells them apart is their text.
    hash: u32,
    slot: u32,
}

/// No table has a slot of that number.
const VACANT: Cell = Cell { hash: 0, slot: u32::MAX };

impl Cell {
    const fn is_vacant(self) -> bool {
        self.slot == VACANT.slot
    }
}

#[derive(Default)]
pub(super) struct Index {
    /// A power of two of them, or none; at most three in four in use.
    cells: Vec<Cell>,
    used: usize,
    /// By slot: the way back.
    texts: Vec<Text>,
}

impl Index {
    const FEWEST_CELLS: usize = 16;

    #[inline(always)]
    pub(super) fn get(&self, key: &Sought<'_>) -> Option<Slot> {
        let cell = self.cells.get(self.find(key)?)?;
        // Whatever is there: the index is always told which slots were freed.
        Some(Slot { index: cell.slot, generation: Slot::ANY })
    }

    pub(super) fn set(&mut self, key: &Sought<'_>, slot: Slot) {
        let index = slot.index as usize;
        if self.texts.len() <= index {
            self.texts.resize_with(index.saturating_add(1), Text::default);
        }
        let cell = Cell { hash: key.hash, slot: slot.index };
        match self.find(key).and_then(|at| self.cells.get_mut(at)) {
            Some(known) if known.slot == slot.index => return,
            Some(known) => *known = cell,
            None => self.add(cell),
        }
        if let Some(text) = self.texts.get_mut(index) {
            *text = Text::of(key);
        }
    }

    pub(super) fn forget(&mut self, slot: u32, seed: &Seed) {
        if let Some(text) = self.texts.get_mut(slot as usize).map(core::mem::take) {
            self.forget_hashed(slot, seed.sought_text(text.as_bytes()).hash);
        }
    }

    fn forget_hashed(&mut self, slot: u32, hash: u32) {
        if let Some(at) = self.search(hash, |cell| cell.slot == slot) {
            self.used = self.used.saturating_sub(1);
            self.vacate(at);
        }
    }

    #[inline(always)]
    fn find(&self, key: &Sought<'_>) -> Option<usize> {
        self.search(key.hash, |cell| {
            cell.hash == key.hash
                && self.texts.get(cell.slot as usize).is_some_and(|text| text.is(key))
        })
    }

    /// The first cell of that hash's, up to a vacant one, that is wanted.
    #[inline(always)]
    fn search(&self, hash: u32, wanted: impl Fn(Cell) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let cell = *self.cells.get(at)?;
            if cell.is_vacant() {
                return None;
            }
            if wanted(cell) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn add(&mut self, cell: Cell) {
        self.used = self.used.saturating_add(1);
        if self.used > self.cells.len() / 4 * 3 {
            self.grow();
        }
        self.place(cell);
    }

    fn grow(&mut self) {
        let cells = self.cells.len().saturating_mul(2).max(Self::FEWEST_CELLS);
        let old = core::mem::replace(&mut self.cells, vec![VACANT; cells]);
        for cell in old.into_iter().filter(|cell| !cell.is_vacant()) {
            self.place(cell);
        }
    }

    fn place(&mut self, cell: Cell) {
        let mut at = self.home(cell.hash);
        while let Some(there) = self.cells.get_mut(at) {
            if there.is_vacant() {
                *there = cell;
                return;
            }
            at = self.after(at);
        }
    }

    /// Vacates a cell, and moves up those behind it that would not be found any more.
    fn vacate(&mut self, at: usize) {
        let (mut hole, mut at) = (at, self.after(at));
        while let Some(cell) = self.cells.get(at).copied().filter(|cell| !cell.is_vacant()) {
            let (from_home, from_hole) =
                (self.steps(self.home(cell.hash), at), self.steps(hole, at));
            if from_home >= from_hole {
                self.write(hole, cell);
                hole = at;
            }
            at = self.after(at);
        }
        self.write(hole, VACANT);
    }

    fn write(&mut self, at: usize, cell: Cell) {
        if let Some(place) = self.cells.get_mut(at) {
            *place = cell;
        }
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

/// The text of a key. Aligned, so that none lies across two lines of the cache.
#[repr(align(32))]
enum Text {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

/// With its length and what tells it from a long one, 32 bytes.
const SHORT: usize = 30;

impl Default for Text {
    fn default() -> Self {
        Self::Short { len: 0, bytes: [0; SHORT] }
    }
}

impl Text {
    fn of(key: &Sought<'_>) -> Self {
        let len = key.head.len().saturating_add(key.own.len());
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..len), u8::try_from(len)) {
            (Some(place), Ok(len)) => {
                let text = key.head.iter().chain(key.own);
                place.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
                Self::Short { len, bytes }
            }
            _ => Self::Long([key.head, key.own].concat().into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    #[inline]
    fn is(&self, key: &Sought<'_>) -> bool {
        let parts = self.as_bytes().split_at_checked(key.head.len());
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
        proptest!(|(acts in proptest::collection::vec(act, 1..300))| {
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
                    index.forget_hashed(slot, u32::MAX - key % 5);
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
            assert!(Text::of(&whole).is(&parts) && Text::of(&parts).is(&whole));
        }
    }
}
