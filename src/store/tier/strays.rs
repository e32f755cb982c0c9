//! Questions that decide about keys for which there was no row: nobody knows of which, so that the rows made
//! since may be theirs.

use alloc::collections::VecDeque;

/// The number of such a question, in the order in which they are asked.
pub(super) type Stray = u64;

/// Those that are under way.
#[derive(Default)]
pub(super) struct Strays {
    next: Stray,
    under_way: VecDeque<Stray>,
}

impl Strays {
    /// The number of the next one.
    pub(super) const fn next(&self) -> Stray {
        self.next
    }

    pub(super) fn begin(&mut self) -> Stray {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.under_way.push_back(number);
        number
    }

    pub(super) fn end(&mut self, number: Stray) {
        if let Ok(at) = self.under_way.binary_search(&number) {
            self.under_way.remove(at);
        }
    }

    pub(super) fn any_before(&self, number: Stray) -> bool {
        self.under_way.front().is_some_and(|oldest| *oldest < number)
    }
}
