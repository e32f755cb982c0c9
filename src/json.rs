//! Just enough JSON for requests: a text is checked once, without recursion, and then read where it stands.
//!
//! Names and texts are WTF-8: JSON can name half a surrogate pair, and a key may hold one.

/// A value in a text that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The value that the text is; `None` where it is not JSON.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut scan = Scan { text, at: 0 };
        let value = scan.value()?;
        scan.space();
        (scan.at == text.len()).then_some(value)
    }

    /// As it was written.
    pub(crate) const fn as_str(self) -> &'a str {
        self.0
    }

    pub(crate) fn flag(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A whole number from 0 to 2^53 - 1, however it is written: `1000`, `1000.0`, `1e3`.
    pub(crate) fn whole(self) -> Option<u64> {
        let number = self.number()?;
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: usize = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        let shifted = fraction.bytes().chain(core::iter::repeat(b'0')).take(exponent.min(400));
        let dropped = fraction.bytes().skip(exponent).all(|digit| digit == b'0');
        let append = |number: u64, digit: u8| {
            let digit = char::from(digit).to_digit(10)?;
            number.checked_mul(10)?.checked_add(digit.into())
        };
        let number = whole.bytes().chain(shifted).try_fold(0, append)?;
        (dropped && number <= crate::time::MAX_SAFE).then_some(number)
    }

    fn number(self) -> Option<&'a str> {
        self.0.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then_some(self.0)
    }

    /// The text that a string stands for, in WTF-8.
    pub(crate) fn text(self) -> Option<Vec<u8>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        let mut text = Vec::with_capacity(inside.len());
        let mut rest = inside;
        while let Some((plain, escaped)) = rest.split_once('\\') {
            text.extend_from_slice(plain.as_bytes());
            rest = unescape(escaped, &mut text)?;
        }
        text.extend_from_slice(rest.as_bytes());
        Some(text)
    }

    /// The values of a list.
    pub(crate) fn items(self) -> Option<Vec<Self>> {
        let mut scan = self.inside('[')?;
        let mut items = Vec::new();
        while !scan.ends() {
            items.push(scan.value()?);
            scan.next_is(',');
        }
        Some(items)
    }

    /// The names and values of an object, in order.
    pub(crate) fn fields(self) -> Option<Vec<(Vec<u8>, Self)>> {
        let mut scan = self.inside('{')?;
        let mut fields = Vec::new();
        while !scan.ends() {
            let name = scan.value()?.text()?;
            scan.next_is(':');
            fields.push((name, scan.value()?));
            scan.next_is(',');
        }
        Some(fields)
    }

    fn inside(self, open: char) -> Option<Scan<'a>> {
        self.0.starts_with(open).then_some(Scan { text: self.0, at: 1 })
    }

    /// The same value in printable ASCII, without white space around its parts.
    pub(crate) fn ascii(self) -> String {
        let mut text = String::with_capacity(self.0.len());
        let (mut quoted, mut escaped) = (false, false);
        for char in self.0.chars() {
            let mut units = [0; 2];
            match char {
                ' ' | '\t' | '\n' | '\r' if !quoted => {}
                ' '..='~' => text.push(char),
                _ => {
                    for unit in char.encode_utf16(&mut units) {
                        text.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
            quoted ^= char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
        }
        text
    }
}

/// A string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len().saturating_add(2));
    json.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => json.extend(['\\', char]),
            '\0'..=' ' if char != ' ' => json.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => json.push(char),
        }
    }
    json.push('"');
    json
}

/// Reads what follows a backslash, and answers what follows that.
fn unescape<'a>(escaped: &'a str, text: &mut Vec<u8>) -> Option<&'a str> {
    let (letter, rest) = escaped.split_at_checked(1)?;
    text.push(match letter {
        "b" => 8,
        "f" => 12,
        "n" => b'\n',
        "r" => b'\r',
        "t" => b'\t',
        "u" => return unescape_unit(rest, text),
        other => other.bytes().next()?,
    });
    Some(rest)
}

/// Four digits, or eight where the second four are the other half of a pair.
fn unescape_unit<'a>(digits: &'a str, text: &mut Vec<u8>) -> Option<&'a str> {
    let (unit, rest) = hex(digits)?;
    let pair = rest.strip_prefix("\\u").and_then(hex).and_then(|(low, after)| {
        let char = char::decode_utf16([unit, low]).next()?.ok()?;
        (char.len_utf16() == 2).then_some((char, after))
    });
    if let Some((char, after)) = pair {
        text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        return Some(after);
    }
    crate::store::push_wtf8(text, [unit]);
    Some(rest)
}

fn hex(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}

/// Where the reading of a text stands.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step();
        }
    }

    /// Takes the character, if it is what comes next after white space.
    fn next_is(&mut self, wanted: char) -> bool {
        self.space();
        let is = self.peek() == Some(wanted as u8);
        if is {
            self.step();
        }
        is
    }

    /// Whether the list or object that is read ends here.
    fn ends(&mut self) -> bool {
        self.next_is(']') || self.next_is('}')
    }

    /// One whole value, with whatever is inside it. `open` are the brackets that it is inside of.
    fn value(&mut self) -> Option<Json<'a>> {
        self.space();
        let start = self.at;
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.space();
            if self.opens(&mut open)? {
                continue;
            }
            while self.closes(&mut open)? {}
            if open.is_empty() {
                return self.text.get(start..self.at).map(Json);
            }
        }
    }

    /// Reads a bracket that opens, with the name that follows it, or else a plain value. True where another
    /// value has to follow.
    fn opens(&mut self, open: &mut Vec<u8>) -> Option<bool> {
        match self.peek()? {
            bracket @ (b'{' | b'[') => {
                self.step();
                if self.next_is(if bracket == b'{' { '}' } else { ']' }) {
                    return Some(false);
                }
                open.push(bracket);
                if bracket == b'{' {
                    self.name()?;
                }
                Some(true)
            }
            b'"' => self.string().map(|()| false),
            b'-' | b'0'..=b'9' => self.digits().map(|()| false),
            _ => self.word().map(|()| false),
        }
    }

    /// After a value: a bracket that closes, or a comma. True where a bracket closed.
    fn closes(&mut self, open: &mut Vec<u8>) -> Option<bool> {
        let Some(bracket) = open.last().copied() else { return Some(false) };
        if self.next_is(if bracket == b'{' { '}' } else { ']' }) {
            open.pop();
            return Some(true);
        }
        self.next_is(',').then_some(())?;
        if bracket == b'{' {
            self.name()?;
        }
        Some(false)
    }

    fn name(&mut self) -> Option<()> {
        self.space();
        self.string()?;
        self.next_is(':').then_some(())
    }

    fn string(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.step();
        loop {
            let byte = self.peek()?;
            self.step();
            match byte {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let letter = self.peek()?;
        self.step();
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                for _ in 0..4 {
                    self.peek().filter(u8::is_ascii_hexdigit)?;
                    self.step();
                }
                Some(())
            }
            _ => None,
        }
    }

    fn digits(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.step();
        }
        let zero = self.peek() == Some(b'0');
        let whole = self.run()?;
        (!zero || whole == 1).then_some(())?;
        if self.peek() == Some(b'.') {
            self.step();
            self.run()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.step();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.step();
            }
            self.run()?;
        }
        Some(())
    }

    /// How many digits there are; at least one.
    fn run(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        self.at.checked_sub(start).filter(|count| *count > 0)
    }

    fn word(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let word = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word))?;
        self.at = self.at.saturating_add(word.len());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // Not every fraction: the other reader rounds some of them.
            any::<i32>().prop_map(|quarters| (f64::from(quarters) / 4.0).into()),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let list = proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from);
            let object = proptest::collection::hash_map(".*", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect()));
            prop_oneof![list, object]
        })
    }

    /// What our reader makes of a value, in the other's terms.
    fn read(json: Json<'_>) -> Value {
        if let Some(items) = json.items() {
            return items.into_iter().map(read).collect();
        }
        if let Some(fields) = json.fields() {
            let field = |(name, value)| (String::from_utf8(name).unwrap(), read(value));
            return Value::Object(fields.into_iter().map(field).collect());
        }
        match (json.text(), json.flag()) {
            (Some(text), _) => String::from_utf8(text).unwrap().into(),
            (_, Some(flag)) => flag.into(),
            _ if json.as_str() == "null" => Value::Null,
            _ => serde_json::from_str(json.number().unwrap()).unwrap(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_another_writes_is_read(value in value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let json = Json::parse(&text).unwrap();
            prop_assert_eq!(read(json), value.clone());
            let ascii = json.ascii();
            prop_assert!(ascii.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            prop_assert_eq!(serde_json::from_str::<Value>(&ascii).unwrap(), value);
        }

        #[test]
        fn what_another_refuses_is_refused(text in "[\\[\\]{}\",:0-9.eE+\\-a-ftrun \\\\\u{1}é]{0,16}") {
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(Json::parse(&text).is_some(), theirs);
        }

        #[test]
        fn what_is_quoted_is_read_again(text in ".*") {
            let json = quoted(&text);
            prop_assert_eq!(Json::parse(&json).unwrap().text().unwrap(), text.into_bytes());
        }
    }

    #[test]
    fn halves_of_pairs_are_kept_and_depth_is_no_matter() {
        let text = |json| Json::parse(json).unwrap().text().unwrap();
        assert_eq!(text(r#""\ud83d\ude00""#), "😀".as_bytes());
        assert_eq!(text(r#""\ud83d""#), [0xed, 0xa0, 0xbd]);
        assert_eq!(text(r#""\ud83dA""#), [0xed, 0xa0, 0xbd, b'A']);
        assert_eq!(text(r#""\ud83d\u0041""#), [0xed, 0xa0, 0xbd, b'A']);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(Json::parse(&deep).is_some());
        assert!(Json::parse(&deep[1..]).is_none());
    }

    #[test]
    fn whole_numbers_are_those_that_a_double_holds() {
        let whole = |json| Json::parse(json).unwrap().whole();
        for thousand in ["1000", "1e3", "1E+3", "1.0e3", "0.1e4", "1000.00", "1000e0"] {
            assert_eq!(whole(thousand), Some(1000), "{thousand}");
        }
        assert_eq!(whole("0e999"), Some(0));
        assert_eq!(whole("9007199254740991"), Some((1 << 53) - 1));
        for odd in
            ["-1", "0.5", "1.5e0", "9007199254740992", "1e999", "\"1\"", "null", "true", "[]"]
        {
            assert_eq!(whole(odd), None, "{odd}");
        }
    }
}
