//! The master keys: the one that seals, and those that only open.

use clap::Args;

use super::problems::{Handed, Problems};
use super::{settings, variable};
use crate::store::MasterKey;

const MISSING: &str = "32 random bytes in base 64, made once and kept, such as by `head -c 32 /dev/urandom | base64`";

/// Where the master keys are.
#[derive(Debug, Args)]
pub(super) struct MasterKeys {
    /// A file that holds the master key, instead of `TOOLHOOK_MASTER_KEY`: what seals header values and signing secrets
    #[arg(long, env = "TOOLHOOK_MASTER_KEY_FILE", value_name = "FILE", help_heading = "Secrets")]
    master_key_file: Option<String>,
    /// A file that holds further master keys, instead of `TOOLHOOK_PREVIOUS_MASTER_KEYS`: they open what they sealed, and seal nothing
    #[arg(long, env = "TOOLHOOK_PREVIOUS_MASTER_KEYS_FILE", value_name = "FILE", help_heading = "Secrets")]
    previous_master_keys_file: Option<String>,
}

impl MasterKeys {
    /// Checks them.
    pub(super) fn check(self, problems: &mut Problems) -> Option<settings::MasterKeys> {
        let handed =
            Handed { name: "TOOLHOOK_MASTER_KEY", value: variable("TOOLHOOK_MASTER_KEY"), file: self.master_key_file };
        let current = problems.secret(handed, MISSING, one);
        let handed = Handed {
            name: "TOOLHOOK_PREVIOUS_MASTER_KEYS",
            value: variable("TOOLHOOK_PREVIOUS_MASTER_KEYS"),
            file: self.previous_master_keys_file,
        };
        let previous = problems.optional_secret(handed, several);
        Some(settings::MasterKeys { current: current?, previous: previous?.unwrap_or_default() })
    }
}

fn one(text: &str) -> Result<MasterKey, String> {
    MasterKey::parse(text).map_err(|problem| format!("{problem}: {MISSING}"))
}

/// Reads keys that are separated by commas or stand on lines of their own.
fn several(text: &str) -> Result<Vec<MasterKey>, String> {
    let keys = text.split([',', '\n']).map(str::trim).filter(|key| !key.is_empty());
    let numbered =
        |(at, key)| MasterKey::parse(key).map_err(|problem| format!("has a key, number {}, that {problem}", at + 1));
    keys.enumerate().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_keys_are_separated_by_commas_or_lines() {
        let keys: Vec<MasterKey> = (1..=3).map(|byte| MasterKey::from_random([byte; 32])).collect();
        let texts: Vec<String> = keys.iter().map(|key| key.reveal().to_string()).collect();
        let text = format!("{}, {}\n{}\n", texts[0], texts[1], texts[2]);
        let names = |keys: &[MasterKey]| keys.iter().map(MasterKey::name).collect::<Vec<_>>();
        assert_eq!(names(&several(&text).ok().unwrap()), names(&keys));
        assert!(several("").ok().unwrap().is_empty());
        let wrong = several(&format!("{},hunter2!", texts[0])).err().unwrap();
        assert!(wrong.contains("number 2") && !wrong.contains("hunter2"), "{wrong}");
    }
}
