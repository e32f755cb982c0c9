//! Limits as JavaScript states them: objects of plain values, every one of which is checked by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use wasm_bindgen::JsValue;

use super::whole;
use crate::limit::{Algorithm, LimitOptions, PolicyError};
use crate::time::{MAX_SAFE, Millis};

/// What an option's value may be; the facade hands over `null` for anything else.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Flag(bool),
    Number(f64),
    Text(String),
    Other(()),
}

/// The options of each limit.
pub(crate) fn limit_options(options: JsValue) -> Result<Vec<LimitOptions>, (PolicyError, usize)> {
    let limits: Vec<BTreeMap<String, Value>> = serde_wasm_bindgen::from_value(options)
        .map_err(|_| (PolicyError::new("limit", "an object, or an array of objects"), 0))?;
    let one = |(index, limit)| limit_option(limit).map_err(|error| (error, index));
    limits.into_iter().enumerate().map(one).collect()
}

fn limit_option(mut given: BTreeMap<String, Value>) -> Result<LimitOptions, PolicyError> {
    let limit = required(&mut given, "limit", "a positive safe integer", positive)?;
    let expected = "a whole number of milliseconds from 1 to 365 days, or text such as \"250ms\", \"10s\", \"5m\", \"1h\", \"7d\"";
    let window = required(&mut given, "window", expected, duration)?;
    let mut options = LimitOptions::new(limit, window);
    if let Some(name) = optional(&mut given, "name", "a non-empty string", text)? {
        options.name = name;
    }
    let algorithms = "\"leaky-bucket\", \"token-bucket\", \"fixed-window\" or \"sliding-window\"";
    let named = |value| Algorithm::named(&text(value)?);
    options.algorithm = optional(&mut given, "algorithm", algorithms, named)?.unwrap_or_default();
    options.burst = optional(&mut given, "burst", "a positive safe integer", positive)?;
    options.strict = optional(&mut given, "strict", "true or false", flag)?.unwrap_or(false);
    Ok(options)
}

fn required<T>(
    given: &mut BTreeMap<String, Value>,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<T, PolicyError> {
    optional(given, name, expected, read)?.ok_or_else(|| PolicyError::new(name, expected))
}

fn optional<T>(
    given: &mut BTreeMap<String, Value>,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<Option<T>, PolicyError> {
    match given.remove(name) {
        None => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| PolicyError::new(name, expected)),
    }
}

/// A number of milliseconds, or text with a unit.
pub(crate) fn duration(value: Value) -> Option<Millis> {
    match value {
        Value::Number(_) => positive(value).and_then(Millis::option),
        Value::Text(text) => Millis::parse(&text),
        _ => None,
    }
}

fn positive(value: Value) -> Option<u64> {
    let Value::Number(number) = value else {
        return None;
    };
    let fits = number.is_finite() && number >= 1.0 && number <= super::number(MAX_SAFE);
    (fits && number.fract() == 0.0).then(|| whole(number))
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
