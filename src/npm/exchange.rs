//! What passes between JavaScript and the module beside single numbers: a block of numbers, texts that are handed
//! over one after the other, and a text that is answered. Each call reads what it was handed before it answers.

use alloc::string::String;
use alloc::vec::Vec;

use super::alone::Alone;
use super::numbers::length;

/// So many numbers there are at most, of what a tier is told.
const NUMBERS: usize = 16;
/// What is handed over may keep so much memory when it has been read.
const KEPT_BYTES: usize = 64 << 10;

pub(super) struct Exchange {
    /// Numbers, in both directions.
    pub(super) numbers: [f64; NUMBERS],
    /// What was handed over.
    given: Vec<u8>,
    /// How much of that has been read.
    read: usize,
    /// What is answered.
    answer: String,
}

pub(super) static EXCHANGE: Alone<Exchange> = Alone::new(Exchange {
    numbers: [0.0; NUMBERS],
    given: Vec::new(),
    read: 0,
    answer: String::new(),
});

impl Alone<Exchange> {
    /// The next text that was handed over, by its length in bytes; a negative length is no text.
    pub(super) fn text(&self, length: i32) -> Option<String> {
        String::from_utf8(self.bytes(length)?).ok()
    }

    /// As `text`, of any bytes.
    pub(super) fn bytes(&self, length: i32) -> Option<Vec<u8>> {
        self.on(|exchange| exchange.next(length).map(<[u8]>::to_vec))
    }

    /// Answers numbers: how many.
    pub(super) fn tell(&self, numbers: &[f64]) -> i32 {
        self.on(|exchange| {
            for (place, number) in exchange.numbers.iter_mut().zip(numbers) {
                *place = *number;
            }
        });
        length(numbers.len())
    }

    /// Answers a text: its length.
    pub(super) fn answer(&self, text: String) -> i32 {
        self.on(|exchange| exchange.answer(text))
    }
}

impl Exchange {
    /// The next bytes that were handed over; a negative length is none.
    pub(super) fn next(&mut self, length: i32) -> Option<&[u8]> {
        let (_, rest) = self.given.split_at_checked(self.read)?;
        let (bytes, _) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.read = self.read.saturating_add(bytes.len());
        Some(bytes)
    }

    /// Answers a text: its length.
    pub(super) fn answer(&mut self, text: String) -> i32 {
        self.answer = text;
        length(self.answer.len())
    }
}

/// Where the block of numbers is.
#[unsafe(no_mangle)]
extern "C" fn numbers() -> usize {
    EXCHANGE.on(|exchange| exchange.numbers.as_ptr().addr())
}

/// Where so many bytes are to be handed over; 0 where there is no room for them.
#[unsafe(no_mangle)]
extern "C" fn given(bytes: usize) -> usize {
    EXCHANGE.on(|Exchange { given, read, .. }| {
        *read = 0;
        given.clear();
        if given.capacity() > KEPT_BYTES.max(bytes) {
            *given = Vec::new();
        }
        if given.try_reserve_exact(bytes).is_err() {
            return 0;
        }
        given.resize(bytes, 0);
        given.as_ptr().addr()
    })
}

/// Where the text is that was answered.
#[unsafe(no_mangle)]
extern "C" fn answer() -> usize {
    EXCHANGE.on(|exchange| exchange.answer.as_ptr().addr())
}
