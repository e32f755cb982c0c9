//! The fields of a JSON object, taken one by one; what is left over at the end is not known.

use super::fault::Fault;
use crate::dedup::{MAX_RESULT_BYTES, Tag};
use crate::json::Json;
use crate::time::{MAX_SAFE, Millis};

pub(crate) const DURATION: &str = "a whole number of milliseconds from 1 to 365 days, or text such as \"250ms\", \"10s\", \"5m\", \"1h\", \"7d\"";
const COUNT: &str = "a positive safe integer";
const TEXT: &str = "a non-empty string";
/// No object has as many. They are compared with one another.
const MOST_FIELDS: usize = 64;

/// Makes the fault of a field.
pub(crate) type Blame = fn(String, &str) -> Fault;

/// An object's fields. `at` is where the object stands, with a full stop, for the names in faults.
pub(crate) struct Fields<'a> {
    at: String,
    left: Vec<(Vec<u8>, Json<'a>)>,
    blame: Blame,
}

impl<'a> Fields<'a> {
    /// The fields of an object, each of which may be there once.
    pub(crate) fn of(json: Json<'a>, name: &str, blame: Blame) -> Result<Self, Fault> {
        let expected = "an object of at most 64 fields";
        let left = json.fields().filter(|fields| fields.len() <= MOST_FIELDS);
        let left = left.ok_or_else(|| blame(or(name, "body"), expected))?;
        let at = if name.is_empty() { String::new() } else { format!("{name}.") };
        for (index, (field, _)) in left.iter().enumerate() {
            if left.iter().take(index).any(|(earlier, _)| earlier == field) {
                return Err(blame(format!("{at}{}", shown(field)), "there only once"));
            }
        }
        Ok(Self { at, left, blame })
    }

    /// A field's name with that of the object around it.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Json<'a>> {
        let index = self.left.iter().position(|(field, _)| field == name.as_bytes())?;
        Some(self.left.swap_remove(index).1)
    }

    /// Nothing may be left that nobody asked for.
    pub(crate) fn end(self) -> Result<(), Fault> {
        match self.left.first() {
            None => Ok(()),
            Some((field, _)) => {
                let field = format!("{}{}", self.at, shown(field));
                Err((self.blame)(field, "left out: there is no such field"))
            }
        }
    }

    pub(crate) fn fault(&self, name: &str, expected: &str) -> Fault {
        (self.blame)(self.name(name), expected)
    }

    /// A field that is read, where it is there.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Json<'a>) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(json) = self.take(name) else { return Ok(None) };
        read(json).map(Some).ok_or_else(|| self.fault(name, expected))
    }

    fn required<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Json<'a>) -> Option<T>,
    ) -> Result<T, Fault> {
        self.read(name, expected, read)?.ok_or_else(|| self.fault(name, expected))
    }

    /// A non-empty text, in WTF-8.
    pub(crate) fn text(&mut self, name: &str) -> Result<Vec<u8>, Fault> {
        self.required(name, TEXT, non_empty)
    }

    pub(crate) fn text_or_none(&mut self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.read(name, TEXT, non_empty)
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<u64, Fault> {
        self.required(name, COUNT, count)
    }

    pub(crate) fn count_or_none(&mut self, name: &str) -> Result<Option<u64>, Fault> {
        self.read(name, COUNT, count)
    }

    /// Units, of which one is the default.
    pub(crate) fn units(&mut self, name: &str) -> Result<u64, Fault> {
        Ok(self.count_or_none(name)?.unwrap_or(1))
    }

    pub(crate) fn duration(&mut self, name: &str) -> Result<Millis, Fault> {
        self.required(name, DURATION, duration_of)
    }

    pub(crate) fn duration_or(&mut self, name: &str, default: Millis) -> Result<Millis, Fault> {
        Ok(self.read(name, DURATION, duration_of)?.unwrap_or(default))
    }

    pub(crate) fn tag(&mut self, name: &str) -> Result<Tag, Fault> {
        let tag = |json: Json<'_>| Tag::new(core::str::from_utf8(&json.text()?).ok()?);
        self.required(name, "what claim answered", tag)
    }

    /// A text by its hash, as messages keep payloads.
    pub(crate) fn hashed(&mut self, name: &str) -> Result<Option<Tag>, Fault> {
        let text = self.read(name, "a string", Json::text)?;
        Ok(text.map(|text| Tag::hash(&text)))
    }

    /// Any JSON at all, as messages keep results.
    pub(crate) fn result(&mut self, name: &str) -> Result<Option<Box<str>>, Fault> {
        let Some(json) = self.take(name) else { return Ok(None) };
        if json.as_str().len() > MAX_RESULT_BYTES {
            return Err(self.fault(name, "JSON of at most 64 KiB"));
        }
        Ok(Some(json.ascii().into()))
    }
}

fn non_empty(json: Json<'_>) -> Option<Vec<u8>> {
    json.text().filter(|text| !text.is_empty())
}

fn count(json: Json<'_>) -> Option<u64> {
    json.whole().filter(|count| (1..=MAX_SAFE).contains(count))
}

/// A number of milliseconds, or text with a unit.
pub(crate) fn duration_of(json: Json<'_>) -> Option<Millis> {
    match json.text() {
        Some(text) => Millis::parse(core::str::from_utf8(&text).ok()?),
        None => Millis::option(json.whole()?),
    }
}

fn or(name: &str, default: &str) -> String {
    if name.is_empty() { default } else { name }.into()
}

/// A name that somebody chose, short enough to be told again.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_64_fields_at_most() {
        let object = |count: usize| {
            let fields: Vec<_> = (0..count).map(|field| format!("\"{field}\":1")).collect();
            format!("{{{}}}", fields.join(","))
        };
        let field = |count: usize, name: &str| {
            let text = object(count);
            let fields = Fields::of(Json::parse(&text).unwrap(), name, Fault::argument);
            fields.err().and_then(|fault| fault.field)
        };
        assert_eq!(field(64, ""), None);
        assert_eq!(field(65, "").as_deref(), Some("body"));
        assert_eq!(field(65, "calls[3]").as_deref(), Some("calls[3]"));
    }
}
