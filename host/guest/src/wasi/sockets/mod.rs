//! `wasi:sockets` in a guest's process: the options that the guest set, and the doors to the host's
//! sockets. Must not hold: decisions.
//!
//! | file | holds |
//! |---|---|
//! | `tcp.rs`, `streams.rs` | TCP sockets, and the two directions of a connection |
//! | `udp.rs`, `udp_link.rs` | UDP sockets, and the door of one |
//! | `lookup.rs` | look-ups of names |
//! | `bindings.rs` | generated |
//! | `p3/` | the interface of WASI 0.3, over the same sockets |
/// The functions that get and set options of a socket.
macro_rules! options {
    ($socket:ty, $own:ident: $($get:ident as $value:ty = $kept:ident, $set:ident = $keep:ident;)*) => {$(
        fn $get(&mut self, socket: $socket) -> SocketResult<$value> {
            Ok(self.$own(&socket)?.options.$kept())
        }

        fn $set(&mut self, socket: $socket, value: $value) -> SocketResult<()> {
            Ok(self.$own(&socket)?.options.$keep(value).map_err(error_code)?)
        }
    )*};
}

pub(crate) mod bindings;
pub(crate) mod lookup;
pub(crate) mod p3;
mod streams;
pub(crate) mod tcp;
#[cfg(test)]
mod tests;
pub(crate) mod udp;
mod udp_link;

use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_wall::doors::sockets::SocketCode;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets as wasi;
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;
use wasmtime_wasi::p2::{IoError, Network, SocketError, SocketResult};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};

use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;

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

/// The part of the network interface that is needed here. Guests are linked to wasmtime-wasi's.
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

impl CallState {
    /// The way out for a new socket, which counts.
    fn new_socket(&mut self) -> SocketResult<Arc<dyn Outside>> {
        let outside = self.caller.outside().ok_or_else(denied)?;
        if self.net().socket() { Ok(outside) } else { Err(ErrorCode::NewSocketLimit.into()) }
    }
}

/// True for the address that the system would bind to without being asked.
fn is_implicit(address: SocketAddr) -> bool {
    address.ip().is_unspecified() && address.port() == 0
}

fn denied() -> SocketError {
    ErrorCode::AccessDenied.into()
}

/// The host's error, in wasi:sockets' terms.
fn error_code(code: SocketCode) -> ErrorCode {
    macro_rules! same_error {
        ($($name:ident)*) => {
            match code {
                $(SocketCode::$name => ErrorCode::$name,)*
            }
        };
    }
    same_error!(
        Unknown AccessDenied NotSupported InvalidArgument OutOfMemory Timeout InvalidState NewSocketLimit
        AddressNotBindable AddressInUse RemoteUnreachable ConnectionRefused ConnectionReset ConnectionAborted
        DatagramTooLarge NameUnresolvable TemporaryResolverFailure PermanentResolverFailure
    )
}
