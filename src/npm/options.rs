//! Limits as JavaScript states them: plain values, every one of which is checked by name.

use alloc::string::String;
use alloc::vec::Vec;

use super::alone::Alone;
use super::exchange::EXCHANGE;
use super::numbers::{number, whole};
use crate::limit::{Algorithm, Limit, LimitOptions, Limits, PolicyError};
use crate::store::redis;
use crate::time::{MAX_SAFE, Millis};

/// What an option's value may be.
enum Value {
    Flag(bool),
    Number(f64),
    Text(String),
    Other,
}

/// Those that were checked so far of a list.
static CHECKED: Alone<Vec<Limit>> = Alone::new(Vec::new());

/// Checks the options of a list's next limit, which is the `index`th: 0, or what `refused` answers.
///
/// They are in the block, two numbers for each: 0 says that it is left out, 1 a flag, 2 a number, 3 so many bytes of
/// what was handed over, 4 anything else.
#[unsafe(no_mangle)]
extern "C" fn check_limit(index: u32) -> i32 {
    match limit_options().and_then(|options| Limit::new(&options)) {
        Ok(limit) => CHECKED.on(|list| {
            // What is left of a list that was never finished goes.
            list.truncate(index as usize);
            list.push(limit);
            0
        }),
        Err(error) => refused(&error),
    }
}

/// Checks the list of so many: the length of its words for the Redis script, with the capacities in the block; or what `refused`
/// answers.
#[unsafe(no_mangle)]
extern "C" fn check_limits(count: u32) -> i32 {
    let list = CHECKED.on(|list| {
        list.truncate(count as usize);
        core::mem::take(list)
    });
    match Limits::new(list) {
        Ok(limits) => EXCHANGE.on(|exchange| {
            for (place, limit) in exchange.numbers.iter_mut().zip(&limits) {
                *place = number(limit.capacity());
            }
            exchange.answer(redis::limits_text(&limits))
        }),
        Err(error) => refused(&error),
    }
}

/// Answers which option makes no sense, and on the next line what would; the length, as a negative number.
fn refused(error: &PolicyError) -> i32 {
    let mut text = String::from(error.option);
    text.push('\n');
    text.push_str(&error.expected);
    EXCHANGE.answer(text).saturating_neg()
}

/// The next option of the limit.
fn next(at: &mut usize) -> Option<Value> {
    let (kind, number) = EXCHANGE.on(|exchange| {
        let (pairs, _) = exchange.numbers.as_chunks::<2>();
        pairs.get(*at).map_or((0.0, 0.0), |[kind, number]| (*kind, *number))
    });
    *at = at.saturating_add(1);
    match whole(kind) {
        0 => None,
        1 => Some(Value::Flag(number != 0.0)),
        2 => Some(Value::Number(number)),
        3 => Some(EXCHANGE.text(whole(number) as i32).map_or(Value::Other, Value::Text)),
        _ => Some(Value::Other),
    }
}

fn limit_options() -> Result<LimitOptions, PolicyError> {
    let at = &mut 0;
    let limit = required(next(at), "limit", "a positive safe integer", positive)?;
    let expected = "a whole number of milliseconds from 1 to 365 days, or text such as \"250ms\", \"10s\", \"5m\", \"1h\", \"7d\"";
    let window = required(next(at), "window", expected, duration)?;
    let mut options = LimitOptions::new(limit, window);
    if let Some(name) = optional(next(at), "name", "a non-empty string", text)? {
        options.name = name;
    }
    let algorithms = "\"leaky-bucket\", \"token-bucket\", \"fixed-window\" or \"sliding-window\"";
    let named = |value| Algorithm::named(&text(value)?);
    options.algorithm = optional(next(at), "algorithm", algorithms, named)?.unwrap_or_default();
    options.burst = optional(next(at), "burst", "a positive safe integer", positive)?;
    options.strict = optional(next(at), "strict", "true or false", flag)?.unwrap_or(false);
    Ok(options)
}

fn required<T>(
    given: Option<Value>,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<T, PolicyError> {
    optional(given, name, expected, read)?.ok_or_else(|| PolicyError::new(name, expected))
}

fn optional<T>(
    given: Option<Value>,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<Option<T>, PolicyError> {
    match given {
        None => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| PolicyError::new(name, expected)),
    }
}

/// A number of milliseconds, or text with a unit.
fn duration(value: Value) -> Option<Millis> {
    match value {
        Value::Number(_) => positive(value).and_then(Millis::option),
        Value::Text(text) => Millis::parse(&text),
        _ => None,
    }
}

fn positive(value: Value) -> Option<u64> {
    let Value::Number(given) = value else {
        return None;
    };
    let safe = whole(given);
    ((1..=MAX_SAFE).contains(&safe) && number(safe) == given).then_some(safe)
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn flag(value: Value) -> Option<bool> {
    match value {
        Value::Flag(flag) => Some(flag),
        _ => None,
    }
}
