//! `wasi:sockets`: TCP and UDP to where the policy permits, and look-ups of names that its rules
//! name.
//!
//! wasmtime-wasi has the sockets, and this stands before it. Each address is decided on where it is
//! asked for, with a denial that names it. Each byte is charged to its call, and each socket and
//! look-up is counted. [`Gate`](crate::wasi::net::Gate) stands behind: wasmtime-wasi asks it before
//! every system call, and it decides from the same rules.
//!
//! | asked for | what happens |
//! |---|---|
//! | a socket | given where there is a rule of its protocol, or attempts are observed; counted |
//! | bind to the unspecified address, port 0 | done; packets come from permitted addresses only |
//! | bind to anything else, listen, accept | denied, always |
//! | TCP connect, UDP connect, each UDP packet out | the address is decided on |
//! | each UDP packet in | dropped if the guest may not send to its sender |
//! | look-up | the name is decided on, then each address it leads to |
//! | look-up of a denied name, observed or asked about | an address in its place, to see the port |
//!
//! In a sandbox process, `outside/` stands in their place.
//!
//! Must not hold: rules.
mod bindings;
mod lookup;
pub(crate) mod outside;
mod streams;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::{AddressPermit, Capability, Denial};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets as wasi;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{IoError, Network, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};

pub(crate) use lookup::{Asked, look_up, resolved};

use crate::wasi::net::{CallNet, is_implicit};
use crate::wasi::state::CallState;

/// Everything of `wasi:sockets`; `outside`: for a sandbox process, which opens none itself.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>, outside: bool) -> wasmtime::Result<()> {
    type State = CallState;
    type HasState = HasSelf<CallState>;
    if outside {
        outside::add_to_linker(linker)?;
    } else {
        // Calls are counted when wasmtime-wasi's sockets are asked for; look-ups do not come by
        // there.
        wasi::tcp::add_to_linker::<State, HasState>(linker, State::reached)?;
        linker.allow_shadowing(true);
        tcp::add_connect(linker)?;
        linker.allow_shadowing(false);
        wasi::tcp_create_socket::add_to_linker::<State, HasState>(linker, State::reached)?;
        wasi::udp::add_to_linker::<State, HasState>(linker, State::reached)?;
        wasi::udp_create_socket::add_to_linker::<State, HasState>(linker, State::reached)?;
    }
    bindings::wasi::sockets::ip_name_lookup::add_to_linker::<State, HasState>(linker, State::called)?;
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

impl tcp_create_socket::Host for CallState {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        if !self.capabilities().has_sockets(Capability::Tcp) {
            return Err(denied());
        }
        self.count_socket()?;
        tcp_create_socket::Host::create_tcp_socket(&mut self.sockets(), family)
    }
}

impl udp_create_socket::Host for CallState {
    async fn create_udp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        if !self.capabilities().has_sockets(Capability::Udp) {
            return Err(denied());
        }
        self.count_socket()?;
        udp_create_socket::Host::create_udp_socket(&mut self.sockets(), family).await
    }
}

impl CallState {
    /// The call's share of the network, known to the gate as well.
    pub(crate) fn socket_net(&mut self) -> Arc<CallNet> {
        let net = Arc::clone(self.net());
        if let Some(gate) = self.gate() {
            gate.of(&net);
        }
        net
    }

    /// Binding is for clients: to nowhere in particular.
    fn may_bind(&mut self, capability: Capability, address: SocketAddr) -> SocketResult<()> {
        if is_implicit(address) {
            self.socket_net();
            return Ok(());
        }
        self.deny(self.capabilities().grants().network().never_listens(capability, "bind", address));
        Err(denied())
    }

    /// A TCP connection to this address, or the denial of it.
    fn may_connect(&mut self, address: SocketAddr) -> SocketResult<()> {
        let net = self.socket_net();
        let decision = net.decide(self.capabilities().grants(), |network| network.tcp(address, &net.resolved()));
        self.record(decision)
    }

    /// UDP packets to and from this address, or the denial of it.
    fn may_send(&mut self, address: SocketAddr) -> SocketResult<()> {
        let net = self.socket_net();
        let decision = net.decide(self.capabilities().grants(), |network| network.udp(address, &net.resolved()));
        self.record(decision)
    }

    fn record(&self, decision: Result<AddressPermit, Denial>) -> SocketResult<()> {
        decision.map(drop).map_err(|denial| {
            self.deny(denial);
            denied()
        })
    }

    /// Counts a socket towards its limit.
    fn count_socket(&mut self) -> SocketResult<()> {
        if self.socket_net().socket() { Ok(()) } else { Err(ErrorCode::NewSocketLimit.into()) }
    }
}

fn denied() -> SocketError {
    ErrorCode::AccessDenied.into()
}
