//! The immutable snapshot of one tenant's tools.

use crate::domain::{Handler, TenantLimits, TenantName, Tool, ToolName};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// What a snapshot knows of its tenant.
#[derive(Clone, Debug)]
pub struct TenantFacts {
    /// Its row.
    pub id: Uuid,
    /// Its name.
    pub name: TenantName,
    /// What the operator lets it have.
    pub limits: TenantLimits,
}

/// One tool, ready to be listed and run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The tool.
    pub tool: Tool,
    /// Which of the tool's versions this is, from 1.
    pub version: i32,
    /// What runs it, secrets in the clear.
    pub handler: Arc<Handler>,
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
}

impl Registry {
    /// Puts a snapshot together. `entries` come first: of two tools with one name the first stays and the other is
    /// set aside.
    pub fn build(tenant: TenantFacts, version: i64, entries: Vec<Arc<Entry>>, mut broken: Vec<Broken>) -> Self {
        let mut by_name: BTreeMap<ToolName, Arc<Entry>> = BTreeMap::new();
        for entry in entries {
            let name = entry.tool.name.clone();
            if by_name.contains_key(&name) {
                broken.push(Broken { name: name.to_string(), reason: "another tool has this name".to_owned() });
            } else {
                by_name.insert(name, entry);
            }
        }
        Self { tenant, version, entries: by_name, broken }
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
}
