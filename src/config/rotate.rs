//! `toolhook rotate-master-key`.

use clap::Args;

use super::master_keys::MasterKeys;
use super::{Place, Problems, settings};

const STEPS: &str = "\
The way to a new key, while everything runs:
  1. give every replica the new key in TOOLHOOK_PREVIOUS_MASTER_KEYS, so that all of them can open what it seals
  2. give every replica the new key in TOOLHOOK_MASTER_KEY, and the old one in TOOLHOOK_PREVIOUS_MASTER_KEYS
  3. run `toolhook rotate-master-key` with the settings of step 2, until nothing is left under the old key
  4. take the old key out of TOOLHOOK_PREVIOUS_MASTER_KEYS";

/// `toolhook rotate-master-key`.
#[derive(Debug, Args)]
#[command(after_help = STEPS)]
pub struct Rotate {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    master_keys: MasterKeys,
}

impl Rotate {
    /// Checks it.
    pub fn check(self, problems: &mut Problems) -> Option<settings::Rotate> {
        let database = self.place.check(problems);
        let master_keys = self.master_keys.check(problems);
        Some(settings::Rotate { database: database?, master_keys: master_keys? })
    }
}
