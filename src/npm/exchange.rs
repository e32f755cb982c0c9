//! What passes between JavaScript and the module beside single numbers: a block of numbers, texts that are handed
//! over one after the other, and a text that is answered. Each call reads what it was handed before it answers.

use alloc::string::String;
use alloc::vec::Vec;

use super::alone::Alone;
use super::numbers::length;

/// So many numbers there are at most, of what a tier is told.
const NUMBERS: usize = 16;

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
    /// Nothing while it is in use, which it never is when a call comes in.
    pub(super) fn on<T: Default>(&self, run: impl FnOnce(&mut Exchange) -> T) -> T {
        self.0.try_borrow_mut().map_or_else(|_| T::default(), |mut exchange| run(&mut exchange))
    }

    /// The next text that was handed over, by its length in bytes; a negative length is no text.
    pub(super) fn text(&self, length: i32) -> Option<String> {
        String::from_utf8(self.bytes(length)?).ok()
    }

    /// As `text`, of any bytes.
    pub(super) fn bytes(&self, length: i32) -> Option<Vec<u8>> {
        self.on(|exchange| {
            let (_, rest) = exchange.given.split_at_checked(exchange.read)?;
            let (bytes, _) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            exchange.read = exchange.read.saturating_add(bytes.len());
            Some(bytes.to_vec())
        })
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

/// Where so many bytes are to be handed over.
#[unsafe(no_mangle)]
extern "C" fn given(bytes: usize) -> usize {
    EXCHANGE.on(|exchange| {
        exchange.read = 0;
        exchange.given.resize(bytes, 0);
        exchange.given.as_ptr().addr()
    })
}

/// Where the text is that was answered.
#[unsafe(no_mangle)]
extern "C" fn answer() -> usize {
    EXCHANGE.on(|exchange| exchange.answer.as_ptr().addr())
}
