//! A document's state in a few characters.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// How many bytes of the hash are kept: 96 bits.
const BYTES: usize = 12;

/// A short hash: the same bytes have the same one, in every process.
pub fn fingerprint(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(BYTES * 2);
    for byte in &Sha256::digest(bytes)[..BYTES] {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
