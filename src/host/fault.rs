//! Errors on their way to JavaScript: plain objects, of which JavaScript makes the package's one error class.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

use crate::error::Error;

/// A code and a message; the host's own error goes along as it is.
pub(crate) fn fault(error: Error<JsValue>) -> JsValue {
    let (code, message, cause) = match error {
        Error::Store(cause) => ("store", "the store failed".into(), Some(cause)),
        Error::Nonsense(what) => ("store", ["the store answered nonsense: ", what].concat(), None),
        Error::Full => {
            ("store", "the store is full: every key that it may hold is in use".into(), None)
        }
        Error::Contention => ("contention", "compare-and-set lost too many times".into(), None),
        Error::Corrupt => {
            ("corrupt_state", "the key holds something that is not ours".into(), None)
        }
        Error::Unsupported(what) => ("unsupported", what.into(), None),
    };
    let object = object(&[("code", code), ("message", message.as_str())]);
    if let Some(cause) = cause {
        set(&object, "cause", &cause);
    }
    object.into()
}

fn object(fields: &[(&str, &str)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        set(&object, name, &JsValue::from_str(value));
    }
    object
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // Setting a property of a fresh plain object cannot fail.
    let _ = Reflect::set(object, &JsValue::from_str(name), value);
}
