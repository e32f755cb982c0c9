//! What prevents a decision. A denial is a value, never one of these.

use core::fmt;

/// Why an operation has no answer. `E` is the host's own error, kept whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The host's store failed.
    Store(E),
    /// The store answered nonsense; says what.
    Nonsense(&'static str),
    /// A bounded store has no room for another key.
    Full,
    /// Compare-and-set lost too many times.
    Contention,
    /// What the store holds is not ours.
    Corrupt,
    /// The store cannot honour this promise; says which.
    Unsupported(&'static str),
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "the store failed: {error}"),
            Self::Nonsense(what) => write!(f, "the store answered nonsense: {what}"),
            Self::Full => f.write_str("the store is full"),
            Self::Contention => f.write_str("compare-and-set lost too many times"),
            Self::Corrupt => f.write_str("the key holds something that is not a record of ours"),
            Self::Unsupported(what) => write!(f, "the store cannot do this: {what}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Error<E> {}
