//! What runs a tool. **The home of a new kind**: a variant of [`HandlerKind`], its fields in [`HandlerDraft::check`].

use super::fault::{Faults, Pointer};
use super::fields::{Fields, Reader};
use super::headers;
use super::limits::MAX_TIMEOUT_MS;
use super::tenant::bounded;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use time::OffsetDateTime;

/// What stands in an answer in place of a secret; written back, it keeps what is stored.
pub const MASK: &str = "***";
/// A handler's bound on a whole call where it says nothing, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u32 = 30_000;
/// How often a request is sent at most where the handler says nothing.
pub const DEFAULT_ATTEMPTS: u32 = 3;
/// The most attempts a handler may ask for.
pub const MAX_ATTEMPTS: u32 = 10;
/// The longest URL, in bytes: what common servers and proxies take.
pub const MAX_URL_BYTES: usize = 2_048;

/// A handler's name: letters, digits, `_`, `-` and `.`, first a letter or digit, at most 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct HandlerName(String);

impl HandlerName {
    /// What a name looks like, for messages.
    pub const EXPECTED: &str =
        "a handler's name has 1 to 64 letters, digits, _, - and ., and starts with a letter or digit";

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        (first && text.len() <= 64 && text.chars().all(allowed)).then(|| Self(text.to_owned()))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HandlerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A checked handler, with its secrets in the clear. What is serialized is what may be stored in the clear.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handler {
    /// What it does.
    pub kind: HandlerKind,
    /// Bounds a whole call, retries too, in milliseconds.
    pub timeout_ms: u32,
    /// How often a request is sent at most.
    pub max_attempts: u32,
    /// Its secrets.
    #[serde(skip)]
    pub secrets: HandlerSecrets,
}

impl Handler {
    /// Whether this is the same handler, secrets too.
    pub fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.timeout_ms == other.timeout_ms
            && self.max_attempts == other.max_attempts
            && self.secrets.is_same(&other.secrets)
    }
}

/// What a handler knows that nobody may read.
#[derive(Clone, Debug, Default)]
pub struct HandlerSecrets {
    /// Headers that are sent with each request, by their lower-case names.
    pub headers: BTreeMap<String, SecretString>,
    /// The key that signs requests, in its `whsec_` form.
    pub signing_secret: Option<SecretString>,
    /// The key before the last rotation, which signs beside the new one until the time given.
    pub previous_signing_secret: Option<(SecretString, OffsetDateTime)>,
}

impl HandlerSecrets {
    /// Whether these are the same secrets.
    pub fn is_same(&self, other: &Self) -> bool {
        type Open<'a> = (Vec<(&'a str, &'a str)>, Option<&'a str>, Option<(&'a str, OffsetDateTime)>);
        fn open(of: &HandlerSecrets) -> Open<'_> {
            let headers = of.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
            let previous = of.previous_signing_secret.as_ref();
            (
                headers,
                of.signing_secret.as_ref().map(ExposeSecret::expose_secret),
                previous.map(|(secret, until)| (secret.expose_secret(), *until)),
            )
        }
        open(self) == open(other)
    }
}

/// The kinds of handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerKind {
    /// A signed POST to the tenant's server.
    Webhook {
        /// Where it goes, as it was written.
        url: String,
        /// Whether the body of an error answer reaches the model.
        error_body: Option<ErrorBody>,
        /// Whether it may answer 202 and report later.
        #[serde(rename = "async", default, skip_serializing_if = "is_not")]
        asynchronous: bool,
    },
    /// Rust code that was registered with the library.
    Native {
        /// The name under which it was registered.
        function: String,
    },
}

/// Whether the body of an error answer reaches the model. Nothing said: of a 4xx it does, of a 5xx it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorBody {
    /// It does.
    Show,
    /// It does not.
    Hide,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_not(said: &bool) -> bool {
    !*said
}

impl HandlerKind {
    /// Whether it may answer that the result comes later.
    pub const fn is_asynchronous(&self) -> bool {
        matches!(self, Self::Webhook { asynchronous: true, .. })
    }

    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Native { .. } => "native",
        }
    }
}

/// A handler as it was received.
#[derive(Clone, Debug)]
pub struct HandlerDraft<'a> {
    fields: &'a Fields,
    at: Pointer,
}

impl<'a> HandlerDraft<'a> {
    /// The members of a handler that stands at the place `at` of a document.
    pub const fn new(fields: &'a Fields, at: Pointer) -> Self {
        Self { fields, at }
    }

    /// The one door to a [`Handler`]. `stored` is what the handler was before, from which a written `"***"` keeps:
    /// headers as long as they go to where they were written for, or an author could send them to themselves. `named` handlers have a `name` member, which is read elsewhere.
    pub fn check(&self, stored: Option<&Handler>, named: bool, faults: &mut Faults) -> Option<Handler> {
        let before = faults.as_slice().len();
        let moved = stored.is_some_and(|stored| !stored.stays_at(self.fields.get("url")));
        let stored = stored.map(|stored| &stored.secrets);
        let mut reader = Reader::new(self.fields, self.at.clone(), faults);
        if named {
            reader.raw("name");
        }
        let kind: Option<String> = reader.required("kind", "\"webhook\" or \"native\"");
        let timeout_ms = bounded(&mut reader, "timeout_ms", 1, MAX_TIMEOUT_MS).unwrap_or(DEFAULT_TIMEOUT_MS);
        let max_attempts = bounded(&mut reader, "max_attempts", 1, MAX_ATTEMPTS).unwrap_or(DEFAULT_ATTEMPTS);
        let mut secrets = HandlerSecrets::default();
        let kind = match kind.as_deref() {
            Some("webhook") => {
                secrets.headers = read_headers(&mut reader, stored, moved);
                secrets.signing_secret = read_signing_secret(&mut reader, stored);
                secrets.previous_signing_secret = stored.and_then(|stored| stored.previous_signing_secret.clone());
                let asynchronous = reader.optional("async", "a boolean").unwrap_or_default();
                let error_body = reader.optional("error_body", "\"show\", \"hide\" or null");
                read_url(&mut reader).map(|url| HandlerKind::Webhook { url, error_body, asynchronous })
            }
            Some("native") => {
                let function = reader.text("function", 64, true);
                function.map(|function| HandlerKind::Native { function })
            }
            Some(_) => {
                reader.fault("kind", "expected \"webhook\" or \"native\"");
                return None; // what its other members mean is unknown
            }
            None => return None,
        };
        reader.finish();
        let kind = kind?;
        (faults.as_slice().len() == before).then_some(Handler { kind, timeout_ms, max_attempts, secrets })
    }
}

fn read_url(reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text("url", MAX_URL_BYTES, true)?;
    match url::Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(text),
        Ok(_) => {
            reader.fault("url", "expected an https URL");
            None
        }
        Err(why) => {
            reader.fault("url", format!("expected an https URL: {why}"));
            None
        }
    }
}

impl Handler {
    /// Whether a written URL has the scheme, the host and the port of the present one.
    fn stays_at(&self, url: Option<&RawValue>) -> bool {
        let HandlerKind::Webhook { url: present, .. } = &self.kind else { return false };
        let origin = |text: &str| url::Url::parse(text).ok().map(|url| url.origin());
        let written = url.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        origin(present).is_some_and(|at| written.and_then(|text| origin(&text)) == Some(at))
    }
}

/// Reads the headers. A handler that has `moved` keeps none.
fn read_headers(
    reader: &mut Reader<'_>,
    stored: Option<&HandlerSecrets>,
    moved: bool,
) -> BTreeMap<String, SecretString> {
    let members = reader.object_of("headers", "an object of header names and text values").unwrap_or_default();
    let place = reader.place("headers");
    let mut written: Vec<(String, String)> = Vec::new();
    for (name, value) in members.iter() {
        match serde_json::from_str(value.get()) {
            Ok(value) => written.push((name.to_owned(), value)),
            Err(_) => reader.faults().add(place.key(name), "expected a string"),
        }
    }
    for (name, detail) in headers::check_headers(written.iter().map(|(name, value)| (name.as_str(), value.as_str()))) {
        let at = if name.is_empty() { place.clone() } else { place.key(&name) };
        reader.faults().add(at, detail);
    }
    let mut headers = BTreeMap::new();
    for (name, value) in written {
        let lower = name.to_ascii_lowercase();
        let kept = stored.and_then(|stored| stored.headers.get(&lower));
        let value = match kept {
            Some(_) if value == MASK && moved => {
                let detail = "\"***\" keeps a value that is meant for another server: the URL's scheme, host or port has changed, so \
                              the value has to be written again";
                reader.faults().add(place.key(&name), detail);
                continue;
            }
            Some(kept) if value == MASK => kept.clone(),
            None if value == MASK => {
                reader
                    .faults()
                    .add(place.key(&name), "\"***\" keeps a stored value, and none is stored under this name");
                continue;
            }
            _ => SecretString::from(value),
        };
        if headers.insert(lower, value).is_some() {
            reader.faults().add(place.key(&name), "this header is there twice, in other letters");
        }
    }
    headers
}

fn read_signing_secret(reader: &mut Reader<'_>, stored: Option<&HandlerSecrets>) -> Option<SecretString> {
    let kept = stored.and_then(|stored| stored.signing_secret.clone());
    let written: Option<String> = reader.optional("signing_secret", "\"***\" or a secret in the form whsec_…");
    match written.as_deref() {
        None | Some(MASK) => kept,
        Some(secret) if is_signing_secret(secret) => Some(SecretString::from(secret)),
        Some(_) => {
            reader.fault("signing_secret", "expected whsec_ and the base 64 of 24 to 64 random bytes");
            kept
        }
    }
}

/// Whether a text is a symmetric secret of the Standard Webhooks specification: `whsec_` and 24 to 64 bytes in base 64.
pub fn is_signing_secret(text: &str) -> bool {
    use base64::Engine;
    let bytes =
        text.strip_prefix("whsec_").and_then(|rest| base64::engine::general_purpose::STANDARD.decode(rest).ok());
    bytes.is_some_and(|bytes| (24..=64).contains(&bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn check(text: &str, stored: Option<&Handler>) -> Result<Handler, Vec<String>> {
        let fields = Fields::parse(text.as_bytes()).unwrap();
        let mut faults = Faults::none();
        let handler = HandlerDraft::new(&fields, Pointer::root()).check(stored, true, &mut faults);
        handler.ok_or_else(|| faults.into_iter().map(|fault| fault.pointer.to_string()).collect())
    }

    #[test]
    fn a_mask_keeps_what_is_stored() {
        let first =
            check(r#"{"name":"h","kind":"webhook","url":"https://a.example/","headers":{"X-Key":"s3cret"}}"#, None)
                .unwrap();
        let text = r#"{"kind":"webhook","url":"https://a.example:443/other","headers":{"x-key":"***","x-new":"n"}}"#;
        let next = check(text, Some(&first)).unwrap();
        assert_eq!(next.secrets.headers["x-key"].expose_secret(), "s3cret");
        assert_eq!(next.secrets.headers["x-new"].expose_secret(), "n");
        assert_eq!(check(text, None).unwrap_err(), ["/headers/x-key"]);
    }

    #[test]
    fn a_mask_keeps_nothing_for_another_server() {
        let written = |url: &str, value: &str| {
            format!(r#"{{"kind":"webhook","url":"{url}","headers":{{"x-key":"{value}"}},"signing_secret":null}}"#)
        };
        let first = check(&written("https://a.example/run", "s3cret"), None).unwrap();
        for elsewhere in ["http://a.example/run", "https://a.example:8443/run", "https://b.example/run"] {
            assert_eq!(check(&written(elsewhere, "***"), Some(&first)).unwrap_err(), ["/headers/x-key"], "{elsewhere}");
            check(&written(elsewhere, "anew"), Some(&first)).unwrap();
        }
    }

    #[test]
    fn i10_secrets_are_in_no_debug_output_and_in_no_stored_text() {
        let handler =
            check(r#"{"kind":"webhook","url":"https://a.example/","headers":{"authorization":"Bearer s3cret"}}"#, None)
                .unwrap();
        assert!(!format!("{handler:?}").contains("s3cret"));
        assert!(!serde_json::to_string(&handler).unwrap().contains("s3cret"));
    }

    #[test]
    fn faults_are_told_together() {
        let text = r#"{"kind":"webhook","url":"ftp://a","timeout_ms":0,"headers":{"a":5},"retries":1}"#;
        assert_eq!(check(text, None).unwrap_err(), ["/timeout_ms", "/headers/a", "/url", "/retries"]);
        assert_eq!(check(r#"{"kind":"pigeon"}"#, None).unwrap_err(), ["/kind"]);
        assert_eq!(check("{}", None).unwrap_err(), ["/kind"]);
    }
}
