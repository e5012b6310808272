//! Which handler runs a tool, and as what: the key to what is known of it while it is called.

use crate::domain::Handler;
use secrecy::{ExposeSecret as _, SecretString};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use uuid::Uuid;

/// A handler as it is now. One that was given another URL, other headers or another secret is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandlerKey {
    id: Uuid,
    content: u64,
}

impl HandlerKey {
    /// The key of the handler with this id.
    pub fn of(id: Uuid, handler: &Handler) -> Self {
        // Keyed by something that only this process knows: nobody can try out secrets against it.
        static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let secrets = &handler.secrets;
        let headers = secrets.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret()));
        let settings = serde_json::to_string(handler).unwrap_or_default();
        let secret = secrets.signing_secret.as_ref().map(SecretString::expose_secret);
        Self { id, content: KEYED.hash_one((settings, headers.collect::<Vec<_>>(), secret)) }
    }
}
