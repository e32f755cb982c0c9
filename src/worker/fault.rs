//! What a request is refused with: a status, a code, and a text that says which field is meant.

use crate::error::Error;
use crate::json::quoted;
use crate::limit::PolicyError;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) field: Option<String>,
    /// The method that it would have to be.
    pub(crate) allow: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, allow: None }
    }

    /// A field of a call that is not acceptable.
    pub(crate) fn argument(field: impl Into<String>, expected: &str) -> Self {
        Self::field("bad_argument", field.into(), expected)
    }

    /// An option that makes no sense.
    pub(crate) fn policy(field: impl Into<String>, expected: &str) -> Self {
        Self::field("bad_policy", field.into(), expected)
    }

    /// An option of the limits under `at`, in the core's words.
    pub(crate) fn limit(at: &str, error: &PolicyError) -> Self {
        let same = error.option == "limit" && at.ends_with("limit");
        let option = if same { "" } else { error.option };
        let dot = if option.is_empty() { "" } else { "." };
        Self::policy(format!("{at}{dot}{option}"), &error.expected)
    }

    /// A token may not see what it asks for.
    pub(crate) fn outside(bound: &str, field: &str) -> Self {
        let message = format!(
            "this token sees only keys under the prefix \"{bound}\", and none of longer than 200 characters"
        );
        Self { field: Some(field.into()), ..Self::new(403, "forbidden", message) }
    }

    pub(crate) fn store(message: impl Into<String>) -> Self {
        Self::new(503, "store", message)
    }

    fn field(code: &'static str, field: String, expected: &str) -> Self {
        let message = format!("{field} must be {expected}");
        Self { field: Some(field), ..Self::new(400, code, message) }
    }

    pub(crate) fn json(&self) -> String {
        let field = self.field.as_deref().map(|field| format!(",\"field\":{}", quoted(field)));
        let (code, message) = (self.code, quoted(&self.message));
        format!(
            "{{\"error\":{{\"code\":\"{code}\",\"message\":{message}{}}}}}",
            field.unwrap_or_default()
        )
    }
}

impl From<Error<String>> for Fault {
    fn from(error: Error<String>) -> Self {
        match error {
            Error::Unsupported(what) => Self::policy("limit", what),
            other => Self::store(other.to_string()),
        }
    }
}
