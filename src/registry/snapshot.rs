//! The immutable snapshot of one tenant's tools.

use super::handler_key::HandlerKey;
use super::list::{Filtered, RenderedList};
use crate::domain::{Handler, TenantFacts, Tool, ToolName};
use crate::format::FormatName;
use std::collections::{BTreeMap, btree_map};
use std::sync::{Arc, OnceLock};

/// One tool, ready to be listed and run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The tool.
    pub tool: Tool,
    /// Which of the tool's versions this is, from 1.
    pub version: i32,
    /// What runs it, secrets in the clear.
    pub handler: Arc<Handler>,
    /// Which handler that is, over all tools that it runs.
    pub handler_key: HandlerKey,
}

/// A stored tool that no longer checks, and why. It is set aside and does not take the others down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The tool's name as stored.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// One tenant's tools at one version.
#[derive(Debug)]
pub struct Registry {
    tenant: TenantFacts,
    version: i64,
    entries: BTreeMap<ToolName, Arc<Entry>>,
    broken: Vec<Broken>,
    /// Per format, its list of all tools once somebody has asked for it.
    lists: [OnceLock<RenderedList>; FormatName::ALL.len()],
    filtered: Filtered,
}

impl Registry {
    /// Puts a snapshot together. `entries` come first: of two tools with one name the first stays and the other is
    /// set aside.
    pub fn build(tenant: TenantFacts, version: i64, entries: Vec<Arc<Entry>>, mut broken: Vec<Broken>) -> Self {
        let mut by_name: BTreeMap<ToolName, Arc<Entry>> = BTreeMap::new();
        for entry in entries {
            match by_name.entry(entry.tool.name.clone()) {
                btree_map::Entry::Vacant(place) => {
                    place.insert(entry);
                }
                btree_map::Entry::Occupied(place) => {
                    let reason = "another tool has this name".to_owned();
                    broken.push(Broken { name: place.key().to_string(), reason });
                }
            }
        }
        Self { tenant, version, entries: by_name, broken, lists: Default::default(), filtered: Filtered::default() }
    }

    /// Whose tools these are.
    pub const fn tenant(&self) -> &TenantFacts {
        &self.tenant
    }

    /// Goes up with every change of the tenant's tools, handlers or limits.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// The tool of this name, enabled or not.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// All tools, ordered by name.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// What had to be set aside.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    pub(super) const fn filtered(&self) -> &Filtered {
        &self.filtered
    }

    /// The place of a format's list.
    pub(super) const fn kept_list(&self, format: FormatName) -> &OnceLock<RenderedList> {
        &self.lists[format as usize]
    }
}
