//! Paths as policies see them and as the origin is sent them: decoded once, without dots, without doubled slashes.
//! Whatever way of writing a path an origin would understand, there is one that is matched.

use core::fmt::Write as _;

/// The path; `None` where an escape is broken or stands for nothing that a path can hold.
pub(crate) fn normal(path: &str) -> Option<Vec<u8>> {
    let decoded = decoded(path)?;
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut open = false;
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        open = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let mut normal = Vec::with_capacity(decoded.len());
    for segment in &segments {
        normal.push(b'/');
        normal.extend_from_slice(segment);
    }
    if open || segments.is_empty() {
        normal.push(b'/');
    }
    Some(normal)
}

fn decoded(path: &str) -> Option<Vec<u8>> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let byte =
            if byte == b'%' { digit(bytes.next()?)? << 4 | digit(bytes.next()?)? } else { byte };
        if byte == 0 {
            return None;
        }
        decoded.push(byte);
    }
    Some(decoded)
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

/// The path as an address has it.
pub(crate) fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path {
        let plain = byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(byte);
        if plain {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Which paths a policy is for: one, or with `/*` at its end all below it, too. Letters are compared without
/// their case and a slash at the end counts for nothing, as most origins have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    path: Vec<u8>,
    below: bool,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (path, below) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        let rooted = text.starts_with('/') && !path.contains('*');
        let path = normal(path).filter(|_| rooted)?;
        Some(Self { path: trimmed(&path).to_ascii_lowercase(), below })
    }

    /// Whether a normal path is one of them.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let path = trimmed(path).to_ascii_lowercase();
        match path.strip_prefix(self.path.as_slice()) {
            Some(rest) => rest.is_empty() || (self.below && rest.starts_with(b"/")),
            None => false,
        }
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_a_path_is_one_path() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("/a/b", "/a/b"),
            ("//a///b", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/%61/%2e%2E/b", "/b"),
            ("/a%2Fb", "/a/b"),
            ("/a/%5C..%5cb", "/b"),
            ("/../../etc", "/etc"),
            ("/a/", "/a/"),
            ("/a/..", "/"),
            ("/a/b/.", "/a/b/"),
            ("/a%252Fb", "/a%252Fb"),
            ("/a%3Fb%23", "/a%3Fb%23"),
            ("/%C3%A9%FF", "/%C3%A9%FF"),
        ] {
            assert_eq!(encoded(&normal(path).unwrap()), expected, "{path}");
            let again = normal(expected).unwrap();
            assert_eq!(encoded(&again), expected, "{path} is normal");
        }
        for broken in ["/%", "/%4", "/%zz", "/a%00b", "/%+1"] {
            assert_eq!(normal(broken), None, "{broken}");
        }
    }

    #[test]
    fn patterns_are_a_path_or_all_below_it() {
        let matches = |pattern: &str, path: &str| {
            Pattern::parse(pattern).unwrap().matches(&normal(path).unwrap())
        };
        for (pattern, path) in [
            ("/login", "/login"),
            ("/login", "/Login/"),
            ("/login", "/x/../%6Cogin"),
            ("/api/*", "/api"),
            ("/api/*", "/api/a/b"),
            ("/*", "/"),
            ("/*", "/anything"),
            ("/", "/"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("/login", "/login2"), ("/login", "/login/x"), ("/api/*", "/apis"), ("/", "/x")]
        {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
        for wrong in ["login", "", "*", "/a/*/b", "/a*", "/%zz"] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
    }
}
