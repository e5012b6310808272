//! Secrets at rest: XChaCha20-Poly1305, bound to the place where they stand.
//!
//! A sealed value is `1 ‖ key id (8) ‖ nonce (24) ‖ ciphertext`. Table, column, tenant and row are authenticated with it,
//! so a value that is moved elsewhere does not open. The key id says which master key opens it: the current one seals, and those
//! that are known beside it only open, so that the key can be changed while values under both are about.

use super::StoreError;
use super::callback_token::CallbackKey;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

const FORM: u8 = 1;
pub(super) const KEY_ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;

/// The key that seals: 32 bytes.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// Reads 32 bytes in base 64.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| "is not base 64".to_owned())?);
        let bytes: [u8; 32] =
            bytes.as_slice().try_into().map_err(|_| format!("has {} bytes instead of 32", bytes.len()))?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// Makes one from random bytes.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The base 64 form, to be kept in a file or a secret manager.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()))
    }

    /// Its name, which tells nothing of it: values say which key they are sealed with.
    pub fn name(&self) -> String {
        name(&self.id())
    }

    fn id(&self) -> [u8; KEY_ID_BYTES] {
        let mut hash = Sha256::new();
        hash.update(b"toolhook master key id");
        hash.update(self.0.as_slice());
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&hash.finalize()[..KEY_ID_BYTES]);
        id
    }
}

/// A key's name: its id in hexadecimal digits.
pub(super) fn name(id: &[u8]) -> String {
    let halves = id.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(half.into(), 16)).collect()
}

/// A key at work.
struct Cipher {
    id: [u8; KEY_ID_BYTES],
    aead: XChaCha20Poly1305,
    /// Signs the URLs that asynchronous handlers report to.
    callbacks: CallbackKey,
}

impl Cipher {
    fn of(key: &MasterKey) -> Self {
        let callbacks = CallbackKey::derived_from(&key.0);
        Self { id: key.id(), aead: XChaCha20Poly1305::new(&Key::from(*key.0)), callbacks }
    }
}

/// Seals with one key, and opens with every key that it knows.
pub struct Vault {
    current: Cipher,
    others: Vec<Cipher>,
}

/// Where a sealed value stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    pub(super) tenant: Uuid,
    pub(super) row: Uuid,
}

impl Place {
    fn bytes(&self) -> Vec<u8> {
        format!("toolhook\0{}\0{}\0{}\0{}", self.table, self.column, self.tenant, self.row).into_bytes()
    }
}

impl Vault {
    /// A vault under one key.
    pub fn new(key: &MasterKey) -> Self {
        Self::with(key, &[])
    }

    /// A vault that seals with `current`, and opens what is sealed with one of `others` too.
    pub fn with(current: &MasterKey, others: &[MasterKey]) -> Self {
        Self { current: Cipher::of(current), others: others.iter().map(Cipher::of).collect() }
    }

    /// The id of the key that seals.
    pub(super) const fn current(&self) -> &[u8; KEY_ID_BYTES] {
        &self.current.id
    }

    /// What signs the URLs that asynchronous handlers report to, and after it what signed them while another key was the current one.
    pub(super) fn callbacks(&self) -> impl Iterator<Item = &CallbackKey> {
        std::iter::once(&self.current).chain(&self.others).map(|key| &key.callbacks)
    }

    /// Whether one of its keys has this id.
    pub(super) fn knows(&self, id: &[u8]) -> bool {
        self.cipher(id).is_some()
    }

    fn cipher(&self, id: &[u8]) -> Option<&XChaCha20Poly1305> {
        std::iter::once(&self.current).chain(&self.others).find(|key| key.id == id).map(|key| &key.aead)
    }

    pub(super) fn seal(&self, place: Place, secret: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|e| StoreError::inconsistent(place.table, place.row, e))?;
        let payload = Payload { msg: secret, aad: &place.bytes() };
        let sealed = self.current.aead.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|e| StoreError::inconsistent(place.table, place.row, e))?;
        Ok([&[FORM][..], &self.current.id, &nonce, &sealed].concat())
    }

    pub(super) fn open(&self, place: Place, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let refuse =
            |reason: &str| StoreError::inconsistent(place.table, place.row, format!("{}: {reason}", place.column));
        let (head, body) = sealed.split_at_checked(HEAD_BYTES).ok_or_else(|| refuse("the sealed value is cut off"))?;
        let id = &head[1..=KEY_ID_BYTES];
        let cipher = self.cipher(id).filter(|_| head[0] == FORM);
        let cipher = cipher.ok_or_else(|| refuse(&format!("sealed with another master key, {}", name(id))))?;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&head[1 + KEY_ID_BYTES..]);
        let payload = Payload { msg: body, aad: &place.bytes() };
        let opened = cipher.decrypt(&XNonce::from(nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| refuse("the sealed value was changed or moved"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i08_a_sealed_value_opens_only_where_it_stands_and_unchanged() {
        let vault = Vault::new(&MasterKey::from_random([7; 32]));
        let place = Place { table: "handlers", column: "headers", tenant: Uuid::nil(), row: Uuid::nil() };
        let sealed = vault.seal(place, b"s3cret").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"s3cret"));
        assert_eq!(vault.open(place, &sealed).unwrap().as_slice(), b"s3cret");
        for moved in [
            Place { column: "signing_secret", ..place },
            Place { tenant: Uuid::max(), ..place },
            Place { row: Uuid::max(), ..place },
        ] {
            assert!(vault.open(moved, &sealed).is_err());
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(vault.open(place, &changed).is_err(), "byte {at}");
        }
        assert!(vault.open(place, &sealed[..10]).is_err());
        assert!(Vault::new(&MasterKey::from_random([8; 32])).open(place, &sealed).is_err());
    }

    #[test]
    fn what_another_known_key_sealed_opens_and_is_never_sealed_with_it() {
        let (old, new) = (MasterKey::from_random([7; 32]), MasterKey::from_random([8; 32]));
        let place = Place { table: "handlers", column: "headers", tenant: Uuid::nil(), row: Uuid::nil() };
        let both = Vault::with(&new, std::slice::from_ref(&old));
        let sealed = Vault::new(&old).seal(place, b"s3cret").unwrap();
        assert_eq!(both.open(place, &sealed).unwrap().as_slice(), b"s3cret");
        let sealed = both.seal(place, b"s3cret").unwrap();
        assert_eq!(Vault::new(&new).open(place, &sealed).unwrap().as_slice(), b"s3cret");
        let unknown = Vault::new(&old).open(place, &sealed).unwrap_err();
        assert!(unknown.to_string().contains(&new.name()), "{unknown}");
    }

    #[test]
    fn a_master_key_has_32_bytes() {
        let key = MasterKey::from_random([9; 32]);
        assert_eq!(MasterKey::parse(&key.reveal()).unwrap().0, key.0);
        assert!(MasterKey::parse("c2hvcnQ=").is_err());
        assert!(MasterKey::parse("?").is_err());
    }
}
