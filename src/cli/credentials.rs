//! What `toolhook dev` keeps in its data folder for whoever wants to use it: the URL and two keys; and the master key.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Failure, private_file};
use crate::store::MasterKey;

/// `credentials.json`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Credentials {
    /// Where the service answers, without a slash at the end.
    pub(super) base_url: String,
    /// A key that may do everything.
    pub(super) operator_key: String,
    /// An editor's key of the tenant `demo`.
    pub(super) demo_key: String,
}

impl Credentials {
    /// Where they are kept.
    pub(super) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("credentials.json")
    }

    /// Those of an earlier start. A file that is not there, or not readable as one of ours, holds none: it is written anew.
    pub(super) fn read(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(data_dir)).ok()?).ok()
    }

    /// Writes them for this user alone.
    pub(super) fn write(&self, data_dir: &Path) -> Result<(), Failure> {
        let path = Self::path(data_dir);
        let text = serde_json::to_string_pretty(self).map_err(Failure::because("cannot encode the credentials"))?;
        private_file::write(&path, &format!("{text}\n"))
            .map_err(Failure::because(format_args!("cannot write {}", path.display())))
    }
}

/// The master key of a data folder, made when it is first asked for.
pub(super) fn master_key(data_dir: &Path) -> Result<MasterKey, Failure> {
    let path = data_dir.join("master_key");
    let make = || {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(format!("{}\n", *MasterKey::from_random(bytes).reveal()))
    };
    let text = private_file::write_once(&path, make)
        .map_err(Failure::because(format_args!("cannot keep a master key in {}", path.display())))?;
    MasterKey::parse(&text).map_err(|problem| {
        Failure::Failed(format!(
            "the master key in {} {problem}. Put the right one back; without it, the secrets that are stored there cannot be \
             read again. Or choose another --data-dir.",
            path.display()
        ))
    })
}
