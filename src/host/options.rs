//! Limits as JavaScript states them: objects of plain values, every one of which is checked by name.

use js_sys::{Array, Reflect};
use wasm_bindgen::JsValue;

use super::whole;
use crate::limit::{Algorithm, LimitOptions, PolicyError};
use crate::time::{MAX_SAFE, Millis};

/// What an option's value may be; the facade hands over `null` for anything else.
pub(crate) enum Value {
    Flag(bool),
    Number(f64),
    Text(String),
    Other,
}

impl Value {
    /// The option of that name; `None` where it is left out.
    fn of(given: &JsValue, name: &str) -> Option<Self> {
        let value = Reflect::get(given, &JsValue::from_str(name)).ok()?;
        if value.is_undefined() {
            return None;
        }
        let text = || value.as_string().map(Self::Text);
        let number = || value.as_f64().map(Self::Number);
        Some(value.as_bool().map(Self::Flag).or_else(number).or_else(text).unwrap_or(Self::Other))
    }
}

/// The options of each limit.
pub(crate) fn limit_options(options: &Array) -> Result<Vec<LimitOptions>, (PolicyError, usize)> {
    let one = |(index, limit)| limit_option(&limit).map_err(|error| (error, index));
    options.iter().enumerate().map(one).collect()
}

fn limit_option(given: &JsValue) -> Result<LimitOptions, PolicyError> {
    let limit = required(given, "limit", "a positive safe integer", positive)?;
    let expected = "a whole number of milliseconds from 1 to 365 days, or text such as \"250ms\", \"10s\", \"5m\", \"1h\", \"7d\"";
    let window = required(given, "window", expected, duration)?;
    let mut options = LimitOptions::new(limit, window);
    if let Some(name) = optional(given, "name", "a non-empty string", text)? {
        options.name = name;
    }
    let algorithms = "\"leaky-bucket\", \"token-bucket\", \"fixed-window\" or \"sliding-window\"";
    let named = |value| Algorithm::named(&text(value)?);
    options.algorithm = optional(given, "algorithm", algorithms, named)?.unwrap_or_default();
    options.burst = optional(given, "burst", "a positive safe integer", positive)?;
    options.strict = optional(given, "strict", "true or false", flag)?.unwrap_or(false);
    Ok(options)
}

fn required<T>(
    given: &JsValue,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<T, PolicyError> {
    optional(given, name, expected, read)?.ok_or_else(|| PolicyError::new(name, expected))
}

fn optional<T>(
    given: &JsValue,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<Option<T>, PolicyError> {
    match Value::of(given, name) {
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
