//! SHA-256, shortened to what a name or a key needs.

use alloc::string::String;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The first 128 bits of the SHA-256 of `bytes`, in 22 characters of unpadded base64url.
pub(crate) fn short(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    base64url(digest.get(..16).unwrap_or(&digest))
}

/// The first 128 bits of the HMAC-SHA-256 of `bytes` under a secret, in 22 characters of unpadded base64url.
pub(crate) fn keyed(secret: &[u8], bytes: &[u8]) -> String {
    // HMAC takes a secret of any length, so there is no error to tell.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(bytes);
    let digest = mac.finalize().into_bytes();
    base64url(digest.get(..16).unwrap_or(&digest))
}

fn base64url(bytes: &[u8]) -> String {
    let sextet = |word: u32, shift: u32| {
        let index = (word >> shift) & 63;
        ALPHABET.get(index as usize).map_or('A', |byte| char::from(*byte))
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        let shifts = [18, 12, 6, 0].into_iter().take(chunk.len().saturating_add(1));
        text.extend(shifts.map(|shift| sextet(word, shift)));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_digest_is_sha_256_in_base64url() {
        // The digest of the empty string begins e3b0c442 98fc1c14 9afbf4c8 996fb924.
        assert_eq!(super::short(b""), "47DEQpj8HBSa-_TImW-5JA");
    }
}
