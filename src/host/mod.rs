//! The only place that knows JavaScript types: its numbers, errors as objects, a host's store as a [`Cas`](crate::Cas).

#[cfg(feature = "npm-stores")]
mod cas;
#[cfg(feature = "npm-stores")]
mod fault;
pub(crate) mod numbers;

#[cfg(feature = "npm-stores")]
pub(crate) use cas::{Adapter, JsCas};
#[cfg(feature = "npm-stores")]
pub(crate) use fault::fault;
