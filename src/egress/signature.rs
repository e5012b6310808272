//! Signing by the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, with the specification's own library.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use zeroize::Zeroizing;

/// The specification's bounds for a secret, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How many bytes a new secret has: as many as the hash that it keys.
const NEW_SECRET_BYTES: usize = 32;
const PREFIX: &str = "whsec_";

/// A handler's secret, shared with its author. Its text form is `whsec_` and base64.
#[derive(Clone)]
pub struct SigningSecret(SecretSlice<u8>);

/// Why a text or bytes are no signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretRefused {
    /// Not `whsec_` followed by base64.
    #[error("a signing secret is whsec_ followed by base64")]
    Form,
    /// Too short to be safe or too long for other libraries.
    #[error("a signing secret has {} to {} bytes", SECRET_BYTES.start(), SECRET_BYTES.end())]
    Length,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// No secret was given.
    #[error("there is no secret to sign with")]
    NoSecret,
    /// The library refused; it signs UTF-8 only.
    #[error("the body could not be signed")]
    Body(#[from] standardwebhooks::WebhookError),
}

impl SigningSecret {
    /// A new secret from the system's randomness, which fails only where the system has none.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; NEW_SECRET_BYTES]);
        getrandom::fill(bytes.as_mut())?;
        Ok(Self(bytes.to_vec().into()))
    }

    /// A secret from its bytes, as they are stored.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SecretRefused> {
        let secret = SecretSlice::from(bytes);
        if !SECRET_BYTES.contains(&secret.expose_secret().len()) {
            return Err(SecretRefused::Length);
        }
        Ok(Self(secret))
    }

    /// A secret from its text.
    pub fn from_text(text: &str) -> Result<Self, SecretRefused> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretRefused::Form)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretRefused::Form)?;
        Self::from_bytes(bytes)
    }

    /// The text for the author, shown once.
    pub fn to_text(&self) -> SecretString {
        let encoded = Zeroizing::new(STANDARD.encode(self.0.expose_secret()));
        format!("{PREFIX}{}", *encoded).into()
    }

    /// The bytes, to be stored encrypted.
    pub fn expose_bytes(&self) -> &[u8] {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

/// The three headers for one attempt: `webhook-id`, `webhook-timestamp` (Unix seconds) and `webhook-signature`.
///
/// The newest secret comes first. While a handler's secret is being changed, all that are valid sign, and a receiver that knows any of
/// them accepts. `body` must be the very bytes that are sent. The id must have no `.`, which is what separates the signed parts.
pub fn sign(
    secrets: &[&SigningSecret],
    id: &str,
    timestamp: i64,
    body: &[u8],
) -> Result<[(&'static str, String); 3], SignError> {
    if secrets.is_empty() {
        return Err(SignError::NoSecret);
    }
    let signatures =
        secrets.iter().map(|secret| Webhook::from_bytes(secret.expose_bytes().to_vec())?.sign(id, timestamp, body));
    let signatures = signatures.collect::<Result<Vec<String>, _>>()?;
    Ok([
        (HEADER_WEBHOOK_ID, id.to_owned()),
        (HEADER_WEBHOOK_TIMESTAMP, timestamp.to_string()),
        (HEADER_WEBHOOK_SIGNATURE, signatures.join(" ")),
    ])
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderValue};
    use time::OffsetDateTime;

    use super::*;

    const BODY: &[u8] = "{\"z\":1.50,\"a\":\"ü / <b>\"}".as_bytes();

    fn headers(secrets: &[&SigningSecret], timestamp: i64) -> HeaderMap {
        let signed = sign(secrets, "0193", timestamp, BODY).unwrap();
        let pairs = signed.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        HeaderMap::from_iter(pairs)
    }

    fn accepts(secret: &SigningSecret, body: &[u8], headers: &HeaderMap) -> bool {
        let webhook = Webhook::new(secret.to_text().expose_secret()).unwrap();
        webhook.verify(body, headers).is_ok()
    }

    #[test]
    fn i11_the_specifications_vector() {
        let secret = SigningSecret::from_text("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let id = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";
        let [_, timestamp, signature] = sign(&[&secret], id, 1_649_367_553, body).unwrap();
        assert_eq!(timestamp, ("webhook-timestamp", "1649367553".to_owned()));
        assert_eq!(signature.1, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    #[test]
    fn i12_a_receiver_accepts_exactly_what_was_signed() {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let secret = SigningSecret::generate().unwrap();
        let signed = headers(&[&secret], now);
        assert!(accepts(&secret, BODY, &signed));
        assert!(!accepts(&secret, &BODY[1..], &signed));
        assert!(!accepts(&SigningSecret::generate().unwrap(), BODY, &signed));
        assert!(!accepts(&secret, BODY, &headers(&[&secret], now - 301)));
        let mut changed = signed.clone();
        changed.insert(HEADER_WEBHOOK_TIMESTAMP, HeaderValue::from(now + 1));
        assert!(!accepts(&secret, BODY, &changed));
        changed.remove(HEADER_WEBHOOK_TIMESTAMP);
        assert!(!accepts(&secret, BODY, &changed));
    }

    #[test]
    fn old_and_new_secret_are_both_accepted_during_a_rotation() {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let [old, new] = [(); 2].map(|()| SigningSecret::generate().unwrap());
        let signed = headers(&[&new, &old], now);
        assert!(accepts(&old, BODY, &signed) && accepts(&new, BODY, &signed));
        let alone = headers(&[&new], now);
        let both = signed[HEADER_WEBHOOK_SIGNATURE].to_str().unwrap();
        assert!(both.starts_with(alone[HEADER_WEBHOOK_SIGNATURE].to_str().unwrap()));
    }

    #[test]
    fn i10_secrets_are_bounded_and_never_printed() {
        for (length, good) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
            assert_eq!(SigningSecret::from_bytes(vec![7; length]).is_ok(), good, "{length}");
        }
        for text in ["", "whsec_", "whsec_%%%", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"] {
            assert!(SigningSecret::from_text(text).is_err(), "{text}");
        }
        let secret = SigningSecret::generate().unwrap();
        assert_eq!(format!("{secret:?}"), "SigningSecret(***)");
        let again = SigningSecret::from_text(secret.to_text().expose_secret()).unwrap();
        assert_eq!(again.expose_bytes(), secret.expose_bytes());
    }

    #[test]
    fn nothing_is_signed_without_a_secret_or_without_text() {
        let secret = SigningSecret::generate().unwrap();
        assert!(matches!(sign(&[], "1", 0, b"{}"), Err(SignError::NoSecret)));
        assert!(matches!(sign(&[&secret], "1", 0, b"\xff"), Err(SignError::Body(_))));
    }
}
