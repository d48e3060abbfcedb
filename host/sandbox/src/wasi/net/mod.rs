//! The network as calls see it: names become addresses, addresses that policy permitted become
//! connections, and each call counts what it uses. Must not hold: what is permitted, or any
//! protocol above TCP.
//!
//! - [`Resolver`] looks names up, by the system's settings or the manifest's name servers.
//! - [`dial`] connects to the very address of an [`AddressPermit`](toolcell_policy::AddressPermit),
//!   and to nothing else.
//! - [`CallNet`] holds one call's counters and background tasks. When it ends, connections end with
//!   it.
//! - [`MeteredStream`] charges a connection's bytes to its call.
//!
//! Each is in the file of its name; [`dial`] is in `dialer.rs`.
mod call_net;
mod dialer;
mod metered;
mod resolver;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use call_net::{CallNet, NetGuard, OverDirection};
pub(crate) use dialer::dial;
pub(crate) use metered::MeteredStream;
pub(crate) use resolver::{LookupError, Resolver};
