//! UDP sockets, which WASI 0.3 does not have here. None can be made, so nothing of them is called.
use wasmtime::component::{Accessor, HasSelf, Resource};

use super::Refused;
use super::bindings::types::{ErrorCode, HostUdpSocket, HostUdpSocketWithStore, IpAddressFamily, IpSocketAddress};
use crate::wasi::state::CallState;

/// A socket that is never made.
pub enum NoUdp {}

type Result<T> = std::result::Result<T, Refused>;
type Socket = Resource<NoUdp>;

fn none<T>() -> Result<T> {
    Err(ErrorCode::NotSupported.into())
}

impl HostUdpSocket for CallState {
    fn create(&mut self, _: IpAddressFamily) -> Result<Socket> {
        none()
    }

    fn bind(&mut self, _: Socket, _: IpSocketAddress) -> Result<()> {
        none()
    }

    fn connect(&mut self, _: Socket, _: IpSocketAddress) -> Result<()> {
        none()
    }

    fn disconnect(&mut self, _: Socket) -> Result<()> {
        none()
    }

    fn get_local_address(&mut self, _: Socket) -> Result<IpSocketAddress> {
        none()
    }

    fn get_remote_address(&mut self, _: Socket) -> Result<IpSocketAddress> {
        none()
    }

    fn get_address_family(&mut self, _: Socket) -> wasmtime::Result<IpAddressFamily> {
        Err(wasmtime::Error::msg("UDP is not offered"))
    }

    fn get_unicast_hop_limit(&mut self, _: Socket) -> Result<u8> {
        none()
    }

    fn set_unicast_hop_limit(&mut self, _: Socket, _: u8) -> Result<()> {
        none()
    }

    fn get_receive_buffer_size(&mut self, _: Socket) -> Result<u64> {
        none()
    }

    fn set_receive_buffer_size(&mut self, _: Socket, _: u64) -> Result<()> {
        none()
    }

    fn get_send_buffer_size(&mut self, _: Socket) -> Result<u64> {
        none()
    }

    fn set_send_buffer_size(&mut self, _: Socket, _: u64) -> Result<()> {
        none()
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        self.table().delete(socket)?;
        Ok(())
    }
}

impl HostUdpSocketWithStore<CallState> for HasSelf<CallState> {
    async fn send(_: &Accessor<CallState, Self>, _: Socket, _: Vec<u8>, _: Option<IpSocketAddress>) -> Result<()> {
        none()
    }

    async fn receive(_: &Accessor<CallState, Self>, _: Socket) -> Result<(Vec<u8>, IpSocketAddress)> {
        none()
    }
}
