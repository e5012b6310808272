//! What a callback's URL ends with: which call it reports on and until when, signed.
//!
//! The text is the base 64 (for URLs) of `tenant (16) ‖ call (16) ‖ expiry in seconds since 1970 (8) ‖ HMAC-SHA256 (32)`. The key is
//! derived from the master key for this purpose alone, so a token is good for nothing else, and nothing else is a token.

use super::Store;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

/// What the key is derived for.
const PURPOSE: &[u8] = b"toolhook callback token 1";
const SAID_BYTES: usize = 16 + 16 + 8;
const TAG_BYTES: usize = 32;

/// A key of the very length that the hash works on.
const KEY_BYTES: usize = 64;

/// The key that signs tokens.
pub(super) struct CallbackKey(Zeroizing<[u8; KEY_BYTES]>);

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackToken {
    /// Whose call it is.
    pub tenant: Uuid,
    /// The call.
    pub call: Uuid,
    /// Until when it may be reported on; to the second.
    pub expires_at: OffsetDateTime,
}

/// A text that is no token of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntrustedToken;

impl CallbackKey {
    pub(super) fn derived_from(master: &[u8; 32]) -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let derived = Hkdf::<Sha256>::new(None, master).expand(PURPOSE, key.as_mut_slice());
        debug_assert!(derived.is_ok(), "as many bytes can be derived");
        Self(key)
    }

    fn mac(&self, said: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&(*self.0).into());
        mac.update(said);
        mac
    }

    fn sign(&self, token: &CallbackToken) -> String {
        let expiry = token.expires_at.unix_timestamp().to_be_bytes();
        let mut bytes = [token.tenant.as_bytes().as_slice(), token.call.as_bytes(), &expiry].concat();
        let tag = self.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token; the comparison takes the same time whatever is wrong with the tag.
    fn verify(&self, text: &str) -> Result<CallbackToken, UntrustedToken> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| UntrustedToken)?;
        let (said, tag) = bytes.split_at_checked(SAID_BYTES).ok_or(UntrustedToken)?;
        if tag.len() != TAG_BYTES {
            return Err(UntrustedToken);
        }
        self.mac(said).verify_slice(tag).map_err(|_| UntrustedToken)?;
        let (tenant, rest) = said.split_at(16);
        let (call, expiry) = rest.split_at(16);
        let id = |bytes: &[u8]| Uuid::from_slice(bytes).map_err(|_| UntrustedToken);
        let expiry = i64::from_be_bytes(expiry.try_into().map_err(|_| UntrustedToken)?);
        let expires_at = OffsetDateTime::from_unix_timestamp(expiry).map_err(|_| UntrustedToken)?;
        Ok(CallbackToken { tenant: id(tenant)?, call: id(call)?, expires_at })
    }
}

impl Store {
    /// Signs a token.
    pub fn sign_callback(&self, token: &CallbackToken) -> String {
        self.vault.callbacks().next().map(|key| key.sign(token)).unwrap_or_default()
    }

    /// Reads a token that we signed. Whether it has expired is for the caller to say.
    pub fn verify_callback(&self, text: &str) -> Result<CallbackToken, UntrustedToken> {
        self.vault.callbacks().find_map(|key| key.verify(text).ok()).ok_or(UntrustedToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_signed_and_in_no_other_form() {
        let key = CallbackKey::derived_from(&[7; 32]);
        let token = CallbackToken {
            tenant: Uuid::from_u128(1),
            call: Uuid::from_u128(2),
            expires_at: OffsetDateTime::from_unix_timestamp(1_796_055_883).unwrap(),
        };
        let text = key.sign(&token);
        assert_eq!(key.verify(&text), Ok(token));
        assert!(text.len() == 96 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.verify(&URL_SAFE_NO_PAD.encode(changed)), Err(UntrustedToken), "bit {bit}");
        }
        for bad in
            ["", "x", &text[..95], &format!("{text}A"), &format!("{text}="), &text.replace(char::is_alphabetic, "_")]
        {
            assert_eq!(key.verify(bad), Err(UntrustedToken), "{bad}");
        }
        assert_eq!(CallbackKey::derived_from(&[8; 32]).verify(&text), Err(UntrustedToken));
    }
}
