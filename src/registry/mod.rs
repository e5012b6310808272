//! One tenant's tools, compiled: what is listed is what can be called.
//!
//! A [`Registry`] never changes. A write to the tenant's tools makes the next one; requests that hold the old one finish
//! with it.

mod handler_key;
mod list;
mod registries;
mod snapshot;
pub mod watch;

pub use crate::domain::TenantFacts;
pub use handler_key::HandlerKey;
pub use list::{ListRequest, RenderedList};
pub use registries::Registries;
pub use snapshot::{Broken, Entry, Registry};
