//! The form of an API key: `thk_<public id>_<secret><checksum>`.
//!
//! The public id finds the row, the secret proves the holder, and the checksum lets a mistyped or invented key be
//! refused without a query (and lets secret scanners recognise a leaked one).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Random bytes behind a public id.
pub const ID_BYTES: usize = 9;
/// Random bytes of a secret: 256 bits, so that a plain hash is enough at rest.
pub const SECRET_BYTES: usize = 32;

const CHECKSUM_CHARS: usize = 6;

/// A well-formed key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyToken {
    id: String,
    secret: String,
}

impl KeyToken {
    /// What every key begins with.
    pub const PREFIX: &str = "thk_";

    /// Makes a key from random bytes.
    pub fn from_random(id: [u8; ID_BYTES], secret: [u8; SECRET_BYTES]) -> Self {
        // `_` separates the parts, so the id does not hold one.
        Self { id: URL_SAFE_NO_PAD.encode(id).replace(['-', '_'], "0"), secret: URL_SAFE_NO_PAD.encode(secret) }
    }

    /// Reads a key; `None` if it is none or its checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(Self::PREFIX)?.split_once('_')?;
        if !rest.is_ascii() || rest.len() != 43 + CHECKSUM_CHARS || id.len() != 12 {
            return None;
        }
        let (secret, sum) = rest.split_at(rest.len() - CHECKSUM_CHARS);
        (checksum(id, secret) == sum).then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The public id, which may be shown and logged.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the database keeps of the secret.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// The whole key, to be shown once.
    pub fn reveal(&self) -> String {
        format!("{}{}_{}{}", Self::PREFIX, self.id, self.secret, checksum(&self.id, &self.secret))
    }
}

impl std::fmt::Debug for KeyToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "KeyToken({}{}_…)", Self::PREFIX, self.id)
    }
}

/// CRC-32 over id and secret, as six characters of base 62.
fn checksum(id: &str, secret: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = crc32fast::hash(format!("{id}_{secret}").as_bytes());
    let mut text = [b'0'; CHECKSUM_CHARS];
    for place in text.iter_mut().rev() {
        *place = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    text.iter().map(|c| char::from(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_as_it_was_made() {
        let key = KeyToken::from_random([0xff; ID_BYTES], [7; SECRET_BYTES]);
        assert_eq!(KeyToken::parse(&key.reveal()), Some(key.clone()));
        assert!(!format!("{key:?}").contains(&key.reveal()[17..]));
    }

    #[test]
    fn a_changed_character_is_seen_without_a_query() {
        let text = KeyToken::from_random([1; ID_BYTES], [2; SECRET_BYTES]).reveal();
        for (at, c) in text.char_indices() {
            let other = if c == 'x' { 'y' } else { 'x' };
            let changed: String = text.char_indices().map(|(i, c)| if i == at { other } else { c }).collect();
            assert_eq!(KeyToken::parse(&changed), None, "{changed}");
        }
        assert_eq!(KeyToken::parse("thk_é_"), None);
    }
}
