//! Making sockets: of protocols that there are rules of, and so many in a call.
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::IpAddressFamily;
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::denied;
use crate::wasi::state::CallState;

impl tcp_create_socket::Host for CallState {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        if self.reach().grants().network().tcp_rules().is_empty() {
            return Err(denied());
        }
        self.count_socket()?;
        tcp_create_socket::Host::create_tcp_socket(&mut self.sockets(), family)
    }
}

impl udp_create_socket::Host for CallState {
    async fn create_udp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        if self.reach().grants().network().udp_rules().is_empty() {
            return Err(denied());
        }
        self.count_socket()?;
        udp_create_socket::Host::create_udp_socket(&mut self.sockets(), family).await
    }
}
