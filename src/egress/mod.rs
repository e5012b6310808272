//! Outbound HTTP only. This room knows URLs and bytes, not tools or tenants.
//!
//! Authors write the URLs, so every request passes three hooks, none of which is enough alone:
//!
//! 1. the URL (`target`): a host that is an address never reaches the resolver, however it is spelled;
//! 2. the resolver (`guard`): all answers of the very look-up that is connected to, refused as a whole for one bad one;
//! 3. the connected peer (`guard`): whatever led to the connection, before a byte of the request.
//!
//! All three ask one [`Policy`], which asks one table (`address`). Whatever it opens, the process itself is no target ([`Surroundings`]). The network's own egress rules remain the outer wall.
//!
//! The one other client, [`Collector`], goes to one address of the operator's.
//!
//! [`Egress::send`] makes one attempt, follows nothing, and ends at its deadline. [`EgressError`] keeps two faces apart: what the
//! log may know, and the few texts that others may see. Whether a request may have arrived is known from its body having been asked for
//! ([`EgressError::may_have_arrived`]); whoever repeats calls relies on that.

mod address;
mod body;
mod client;
mod collector;
mod error;
mod guard;
mod policy;
mod retry_after;
mod signature;
mod surroundings;
mod target;

pub use client::{Egress, Inbound, Outbound, Verdict};
pub use collector::Collector;
pub use error::{EgressError, SetupFailed};
pub use guard::{Lookup, SystemLookup};
pub use policy::Policy;
pub use reqwest::Method;
pub use retry_after::MAX_RETRY_AFTER;
pub use signature::{SecretRefused, SignError, SigningSecret, sign};
pub use surroundings::{Roots, Surroundings};
pub use target::{MAX_URL_BYTES, UrlRefused};
