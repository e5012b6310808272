//! How many files and connections the system lets this process have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::http::Bounds;

/// What is left for the database, webhooks, and all else that is no client.
const RESERVED: u64 = 512;

/// Asks the system for as many as it allows, and bounds connections by what there is: a process that has none left can reach
/// neither its database nor anything else.
pub(super) fn fit(bounds: Bounds) -> Bounds {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return bounds };
    let wanted = u64::try_from(bounds.connections).unwrap_or(u64::MAX).saturating_add(RESERVED);
    let (more, enough) = (hard.min(wanted), soft >= wanted);
    let raised = !enough && setrlimit(Resource::RLIMIT_NOFILE, more, hard).is_ok();
    let limit = if raised { more } else { soft };
    let room = usize::try_from(limit.saturating_sub(RESERVED).max(limit / 2)).unwrap_or(usize::MAX);
    if room < bounds.connections {
        tracing::warn!(
            connections = room,
            limit,
            "the system lets this process have fewer connections than were asked for"
        );
    }
    Bounds { connections: bounds.connections.min(room), ..bounds }
}
