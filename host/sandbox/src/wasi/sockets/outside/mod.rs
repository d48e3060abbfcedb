//! Sockets of guests in a sandbox process, which the host has. Must not hold: decisions.
//!
//! A socket in the process is only a record of what the guest set. The host connects, after its
//! policy said yes, and hands bytes and packets on. It does not hand over the connected socket: the
//! process could then pass the call's limits, and go on after its end.
//!
//! | file | holds |
//! |---|---|
//! | [`message`] | the messages, and wasi:sockets' errors in them |
//! | [`options`] | options that the guest may set |
//! | [`tcp`], [`streams`] | TCP in the sandbox process |
//! | [`udp`] | UDP there |
//! | [`serve_tcp`], [`serve_udp`] | the host's side of both |
mod bindings;
pub(crate) mod message;
mod options;
mod serve_tcp;
mod serve_udp;
mod streams;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::sync::Arc;

use toolcell_policy::{Capability, Grants};
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::SocketResult;
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

pub(crate) use message::{TcpWanted, UdpWanted};
pub(crate) use serve_tcp::serve as serve_tcp;
pub(crate) use serve_udp::serve as serve_udp;

use super::denied;
use crate::caller::denials::Denials;
use crate::caller::outside::Outside;
use crate::wasi::net::CallNet;
use crate::wasi::state::CallState;

/// TCP and UDP of a sandbox process, in place of wasmtime-wasi's, which would ask the kernel.
pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    use bindings::wasi::sockets as outside;
    type State = CallState;
    type HasState = HasSelf<CallState>;
    outside::tcp::add_to_linker::<State, HasState>(linker, State::called)?;
    outside::tcp_create_socket::add_to_linker::<State, HasState>(linker, State::called)?;
    outside::udp::add_to_linker::<State, HasState>(linker, State::called)?;
    outside::udp_create_socket::add_to_linker::<State, HasState>(linker, State::called)
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
    fn permits(&self, capability: Capability, to: std::net::SocketAddr) -> bool {
        let decision = self.decide(capability, to);
        decision.map_err(|denial| self.denials.add(denial)).is_ok()
    }

    fn decide(
        &self,
        capability: Capability,
        to: std::net::SocketAddr,
    ) -> Result<toolcell_policy::AddressPermit, toolcell_policy::Denial> {
        self.net.decide(self.grants, |network| match capability {
            Capability::Udp => network.udp(to, &self.net.resolved()),
            _ => network.tcp(to, &self.net.resolved()),
        })
    }
}

impl CallState {
    /// The way out for a new socket, which is counted.
    fn outside_socket(&mut self) -> SocketResult<Arc<dyn Outside>> {
        let outside = self.caller.outside().ok_or_else(denied)?;
        if self.net().socket() { Ok(outside) } else { Err(ErrorCode::NewSocketLimit.into()) }
    }
}
