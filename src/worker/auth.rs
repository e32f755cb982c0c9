//! Who may call: bearer tokens, of which only digests are compared, all of them and in full each time.

use sha2::{Digest, Sha256};

use super::fault::Fault;

const MIN_TOKEN_CHARS: usize = 16;

/// What a caller may see: every key, or those under a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) prefix: Option<String>,
}

/// The access of whoever sent this Authorization header, by the tokens in the settings: a list of `token` or
/// `token=prefix` with commas between them.
pub(crate) fn access(tokens: Option<&str>, header: Option<&str>) -> Result<Access, Fault> {
    let tokens = entries(tokens)?;
    let presented = header.and_then(bearer).ok_or_else(unauthorized)?;
    let presented = Sha256::digest(presented.as_bytes());
    let mut found = None;
    for (token, prefix) in &tokens {
        if same(&Sha256::digest(token.as_bytes()), &presented) {
            found = Some(prefix);
        }
    }
    found.map(|prefix| Access { prefix: prefix.map(str::to_owned) }).ok_or_else(unauthorized)
}

type Entries<'a> = Vec<(&'a str, Option<&'a str>)>;

/// The tokens; a setting with anything wrong in it lets nobody in.
fn entries(tokens: Option<&str>) -> Result<Entries<'_>, Fault> {
    let says = |message: &str| Fault::new(503, "not_configured", message);
    let tokens = tokens.ok_or_else(|| {
        says("no token is set: put one of at least 16 characters into the secret TIDEGATE_TOKEN")
    })?;
    let entries: Entries<'_> = tokens.split(',').map(str::trim).map(entry).collect();
    if entries.iter().any(|(token, _)| token.len() < MIN_TOKEN_CHARS) {
        return Err(says("TIDEGATE_TOKEN: each token needs at least 16 characters"));
    }
    if entries.iter().any(|(_, prefix)| *prefix == Some("")) {
        return Err(says(
            "TIDEGATE_TOKEN: no prefix follows a \"=\", which does not fill up base64",
        ));
    }
    Ok(entries)
}

/// A token may end in one or two "=" signs, as base64 does that is filled up to a multiple of four. A prefix follows
/// the last sign of the first run.
fn entry(text: &str) -> (&str, Option<&str>) {
    let token = text.split('=').next().unwrap_or_default();
    let rest = text.get(token.len()..).unwrap_or_default();
    let prefix = rest.trim_start_matches('=');
    let signs = rest.len().saturating_sub(prefix.len());
    if signs == 0 || (prefix.is_empty() && signs <= 2 && text.len().is_multiple_of(4)) {
        return (text, None);
    }
    let end = token.len().saturating_add(signs.saturating_sub(1));
    (text.get(..end).unwrap_or_default(), Some(prefix))
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized() -> Fault {
    Fault::new(401, "unauthorized", "a known token is needed: Authorization: Bearer <token>")
}

/// Compares without an early end.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other));
    one.len() == other.len() && core::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "0123456789abcdef";

    fn access_of(tokens: &str, header: &str) -> Result<Option<String>, u16> {
        access(Some(tokens), Some(header)).map(|access| access.prefix).map_err(|fault| fault.status)
    }

    #[test]
    fn tokens_and_their_prefixes() {
        let bearer = format!("Bearer {LONG}");
        assert_eq!(access_of(LONG, &bearer), Ok(None));
        assert_eq!(
            access_of(&format!("{LONG}{LONG}, {LONG}=app"), &bearer),
            Ok(Some("app".into()))
        );
        let padded = format!("{LONG}ab==");
        let sent = format!("bearer {padded}");
        assert_eq!(access_of(&padded, &sent), Ok(None));
        assert_eq!(access_of(&format!("{padded}=app"), &sent), Ok(Some("app".into())));
        assert_eq!(access_of(&format!("{padded}=a=b"), &sent), Ok(Some("a=b".into())));
        assert_eq!(access_of(&format!("{padded}=app"), &format!("Bearer {LONG}ab")), Err(401));
        for header in
            ["", LONG, "Bearer ", "Basic x", &format!("Bearer {LONG}0"), "Bearer 0123456789abcde"]
        {
            assert_eq!(access_of(LONG, header), Err(401), "{header}");
        }
        for tokens in [
            "short",
            &format!("{LONG},"),
            &format!("{LONG},short=app"),
            &format!("{LONG}="),
            &format!("{LONG}===="),
            &format!("{padded}="),
        ] {
            assert_eq!(access_of(tokens, &bearer), Err(503), "{tokens}");
        }
        assert_eq!(access(None, Some(&bearer)).map_err(|fault| fault.status), Err(503));
    }
}
