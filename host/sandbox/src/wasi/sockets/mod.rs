//! `wasi:sockets`: TCP and UDP to where the policy permits, and lookups of names in its rules.
//!
//! A socket in the guest's process is only a record of what the guest set. The host connects after
//! the policy allows it, and forwards bytes and packets. It does not pass the connected socket on:
//! the process could then exceed the call's limits, and use it after the call's end.
//!
//! | asked for | what happens |
//! |---|---|
//! | a socket | given, and counted |
//! | bind to the unspecified address, port 0 | done; packets come from permitted addresses only |
//! | bind to anything else, listen, accept | denied, always |
//! | TCP connect, UDP connect, each UDP packet out | the address is decided on |
//! | each UDP packet in | dropped if the guest may not send to its sender |
//! | look-up | the name is decided on, then each address it leads to |
//! | look-up of a denied name, observed or asked about | an address in its place, to see the port |
//!
//! | file | holds |
//! |---|---|
//! | [`lookup`] | the host's side of look-ups |
//! | [`serve_tcp`], [`serve_udp`] | the host's side of sockets |
//! | [`applied`] | options that the guest set |
//! | [`code`] | the system's errors in wasi:sockets' words |
//!
//! Must not hold: rules.
mod applied;
mod code;
mod lookup;
mod serve_tcp;
mod serve_udp;

use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::{AddressPermit, Ask, Capability, Denial, Grants, Host};

pub(crate) use lookup::{LookupParts, look_up, resolved};
pub(crate) use serve_tcp::serve as serve_tcp;
pub(crate) use serve_udp::serve as serve_udp;

use crate::wasi::net::CallNet;
use toolcell_wall::denials::CallDenials;

/// What a call needs to decide on its sockets, on the host's side.
#[derive(Clone, Copy)]
pub(crate) struct Deciding<'a> {
    pub(crate) net: &'a Arc<CallNet>,
    pub(crate) grants: &'a Grants,
    pub(crate) denials: &'a CallDenials,
}

impl Deciding<'_> {
    /// True if the guest may reach the address. Otherwise the denial is recorded.
    fn permits(&self, capability: Capability, to: SocketAddr) -> bool {
        let decision = self.decide(capability, to);
        let permitted = decision.map_err(|denial| self.denials.add(denial)).is_ok();
        if permitted {
            self.net.used(|| self.use_of(capability, to));
        }
        permitted
    }

    /// The use as the rules name it: by the name that led to the address in this call, if a rule
    /// has that.
    fn use_of(&self, capability: Capability, to: SocketAddr) -> String {
        let resolved = self.net.resolved();
        let port = to.port();
        let is_named = |host: &Host| {
            self.net.decide(self.grants, |network| network.socket_of_name(capability, host, port).is_ok())
        };
        let names = resolved.names_of(to.ip()).map(|name| Host::Name(name.to_owned()));
        let host = names.into_iter().find(is_named).unwrap_or(Host::Addr(to.ip()));
        Ask::Socket(capability, host, port).to_string()
    }

    fn decide(&self, capability: Capability, to: SocketAddr) -> Result<AddressPermit, Denial> {
        self.net.decide(self.grants, |network| match capability {
            Capability::Udp => network.udp(to, &self.net.resolved()),
            _ => network.tcp(to, &self.net.resolved()),
        })
    }
}
