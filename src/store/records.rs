//! A table of records that are one value each.

use super::Slot;
use super::slots::{Full, Row, Slots};
use crate::time::Timestamp;

struct RecordRow<T> {
    record: Option<T>,
    generation: u32,
    next_free: u32,
}

impl<T> Row for RecordRow<T> {
    fn vacant(generation: u32, next_free: u32) -> Self {
        Self { record: None, generation, next_free }
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn next_free(&self) -> u32 {
        self.next_free
    }
}

pub(in crate::store) struct Records<T> {
    rows: Slots<RecordRow<T>>,
}

impl<T> Records<T> {
    pub(in crate::store) fn new(most_rows: u32) -> Self {
        Self { rows: Slots::new(most_rows) }
    }

    pub(in crate::store) fn len(&self) -> u32 {
        self.rows.len()
    }

    /// The slot with the generation of the row that is there, if the slot is its.
    pub(in crate::store) fn place(&self, slot: Slot) -> Option<Slot> {
        let row = self.rows.get(slot.index).filter(|row| slot.holds(row.generation))?;
        Some(Slot { generation: row.generation, ..slot })
    }

    pub(in crate::store) fn get(&self, slot: Slot) -> Option<&T> {
        self.rows.get(slot.index).filter(|row| slot.holds(row.generation))?.record.as_ref()
    }

    pub(in crate::store) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let row = self.rows.get_mut(slot.index).filter(|row| slot.holds(row.generation))?;
        row.record.as_mut()
    }

    /// Changes a record, which may then be over sooner.
    pub(in crate::store) fn update(
        &mut self,
        slot: Slot,
        ends: impl Fn(&T) -> Timestamp,
        change: impl FnOnce(&mut T),
    ) {
        if let Some(record) = self.get_mut(slot) {
            change(record);
            let over_at = ends(record);
            self.rows.hasten(slot.index, over_at);
        }
    }

    /// Replaces what the slot holds; answers where it is now, if it is anywhere.
    pub(in crate::store) fn put(
        &mut self,
        slot: Option<Slot>,
        record: Option<T>,
        over_at: Timestamp,
        now: Timestamp,
        ends: impl Fn(&T) -> Timestamp,
    ) -> Result<Option<Slot>, Full> {
        let held = slot.filter(|slot| self.get(*slot).is_some());
        match (held, record) {
            (Some(slot), None) => {
                self.rows.remove(slot.index);
                Ok(None)
            }
            (Some(slot), Some(record)) => {
                if let Some(row) = self.rows.get_mut(slot.index) {
                    row.record = Some(record);
                }
                self.rows.hasten(slot.index, over_at);
                Ok(Some(slot))
            }
            (None, None) => Ok(None),
            (None, Some(record)) => {
                let row = RecordRow { record: Some(record), generation: 0, next_free: 0 };
                let ends = |row: &RecordRow<T>| row.record.as_ref().map_or(now, &ends);
                let index = self.rows.insert(row, over_at, now, ends)?;
                let generation = self.rows.get(index).map_or(0, Row::generation);
                Ok(Some(Slot { index, generation }))
            }
        }
    }

    pub(in crate::store) fn remove(&mut self, slot: Slot) {
        if self.get(slot).is_some() {
            self.rows.remove(slot.index);
        }
    }

    pub(in crate::store) fn take_freed(&mut self) -> Option<(u32, Option<T>)> {
        self.rows.take_freed().map(|(slot, row)| (slot, row.record))
    }
}
