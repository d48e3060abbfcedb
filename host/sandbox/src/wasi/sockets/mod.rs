//! `wasi:sockets`: TCP and UDP to where the policy permits, and look-ups of names that its rules
//! name.
//!
//! A socket in the guest's process is only a record of what the guest set. The host connects, after
//! its policy said yes, and hands bytes and packets on. It does not hand over the connected socket:
//! the process could then pass the call's limits, and go on after its end.
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
//! | [`message`] | the messages, and wasi:sockets' errors in them |
//! | [`options`] | options that the guest may set |
//! | [`tcp`], [`streams`], [`udp`] | sockets in the guest's process |
//! | [`lookup`] | look-ups, on both sides |
//! | [`serve_tcp`], [`serve_udp`] | the host's side of sockets |
//!
//! Must not hold: rules.
mod bindings;
mod lookup;
pub(crate) mod message;
mod options;
mod serve_tcp;
mod serve_udp;
mod streams;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::{Capability, Grants};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets as wasi;
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;
use wasmtime_wasi::p2::{IoError, Network, SocketError, SocketResult};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};

pub(crate) use lookup::{Asked, look_up, resolved};
pub(crate) use message::{TcpWanted, UdpWanted};
pub(crate) use serve_tcp::serve as serve_tcp;
pub(crate) use serve_udp::serve as serve_udp;

use crate::wasi::net::CallNet;
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;
use toolcell_wall::denials::Denials;

/// Everything of `wasi:sockets`.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    use bindings::wasi::sockets as own;
    type State = CallState;
    type HasState = HasSelf<CallState>;
    own::tcp::add_to_linker::<State, HasState>(linker, State::called)?;
    own::tcp_create_socket::add_to_linker::<State, HasState>(linker, State::called)?;
    own::udp::add_to_linker::<State, HasState>(linker, State::called)?;
    own::udp_create_socket::add_to_linker::<State, HasState>(linker, State::called)?;
    own::ip_name_lookup::add_to_linker::<State, HasState>(linker, State::called)?;
    wasi::instance_network::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
    let options = wasi::network::LinkOptions::default();
    wasi::network::add_to_linker::<State, WasiSockets>(linker, &options, State::sockets)
}

/// The part of the network interface that the interfaces here need; guests are linked to
/// wasmtime-wasi's.
impl wasi::network::Host for CallState {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(&mut self, error: Resource<IoError>) -> wasmtime::Result<Option<ErrorCode>> {
        wasi::network::Host::network_error_code(&mut self.sockets(), error)
    }
}

impl wasi::network::HostNetwork for CallState {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        wasi::network::HostNetwork::drop(&mut self.sockets(), network)
    }
}

/// The parts of a call that decide on its sockets, on the host's side.
#[derive(Clone, Copy)]
pub(crate) struct Deciding<'a> {
    pub(crate) net: &'a Arc<CallNet>,
    pub(crate) grants: &'a Grants,
    pub(crate) denials: &'a Denials,
}

impl Deciding<'_> {
    /// True if the guest may reach the address. If not, it is recorded.
    fn permits(&self, capability: Capability, to: SocketAddr) -> bool {
        let decision = self.decide(capability, to);
        decision.map_err(|denial| self.denials.add(denial)).is_ok()
    }

    fn decide(
        &self,
        capability: Capability,
        to: SocketAddr,
    ) -> Result<toolcell_policy::AddressPermit, toolcell_policy::Denial> {
        self.net.decide(self.grants, |network| match capability {
            Capability::Udp => network.udp(to, &self.net.resolved()),
            _ => network.tcp(to, &self.net.resolved()),
        })
    }
}

impl CallState {
    /// The way out for a new socket, which is counted.
    fn new_socket(&mut self) -> SocketResult<Arc<dyn Outside>> {
        let outside = self.caller.outside().ok_or_else(denied)?;
        if self.net().socket() { Ok(outside) } else { Err(ErrorCode::NewSocketLimit.into()) }
    }
}

/// True for the address that the system would bind to by itself.
fn is_implicit(address: SocketAddr) -> bool {
    address.ip().is_unspecified() && address.port() == 0
}

fn denied() -> SocketError {
    ErrorCode::AccessDenied.into()
}
