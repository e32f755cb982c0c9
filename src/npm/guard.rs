//! What watches stores, one for each caller of one.

use super::alone::{Alone, Numbered};
use super::numbers::{number, timestamp};
use crate::guard::{Failure, Guard, OnStoreError};

static GUARDS: Alone<Numbered<Guard>> = Alone::new(Numbered::new());

/// Makes a guard; answers its number. The choice is 0 to throw, 1 to allow, 2 to deny, 3 to decide here.
#[unsafe(no_mangle)]
extern "C" fn guard(on_store_error: u32) -> u32 {
    GUARDS.place(Guard::new(match on_store_error {
        0 => OnStoreError::Throw,
        1 => OnStoreError::Allow,
        2 => OnStoreError::Deny,
        _ => OnStoreError::Local,
    }))
}

/// Lets go of it.
#[unsafe(no_mangle)]
extern "C" fn free_guard(guard: u32) {
    GUARDS.free(guard);
}

/// Whether to ask the store now.
#[unsafe(no_mangle)]
extern "C" fn guard_ask(guard: u32, now: f64) -> u32 {
    GUARDS.at(guard, |guard| guard.ask(timestamp(now))).is_none_or(|ask| ask).into()
}

/// How long the store is left alone from now on.
#[unsafe(no_mangle)]
extern "C" fn guard_closed_for(guard: u32, now: f64) -> f64 {
    GUARDS.at(guard, |guard| number(guard.closed_for(timestamp(now)).as_ms())).unwrap_or(0.0)
}

/// The store answered.
#[unsafe(no_mangle)]
extern "C" fn guard_answered(guard: u32) {
    GUARDS.at(guard, Guard::answered);
}

/// The call failed: 0 by the store, 1 by the time that it took, 2 by itself. Answers when asking again may help.
#[unsafe(no_mangle)]
extern "C" fn guard_failed(guard: u32, failure: u32, now: f64) {
    let failure = match failure {
        0 => Failure::Store,
        1 => Failure::Timeout,
        _ => Failure::Call,
    };
    GUARDS.at(guard, |guard| guard.failed(failure, timestamp(now)));
}

/// When asking again may help.
#[unsafe(no_mangle)]
extern "C" fn guard_retry_after(guard: u32, now: f64) -> f64 {
    let wait = |guard: &mut Guard| number(guard.verdict(timestamp(now)).retry_after.as_ms());
    GUARDS.at(guard, wait).unwrap_or(0.0)
}
