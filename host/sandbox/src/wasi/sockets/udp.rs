//! `wasi:sockets/udp`: wasmtime-wasi's sockets, behind decisions on where each packet goes, with
//! each byte charged.
use std::net::SocketAddr;

use toolcell_policy::Capability;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::bindings::sockets::udp::{
    Host, HostIncomingDatagramStream, HostOutgoingDatagramStream, HostUdpSocket, IncomingDatagram,
    IncomingDatagramStream, OutgoingDatagram, OutgoingDatagramStream,
};
use wasmtime_wasi::p2::{DynPollable, Network, SocketError, SocketResult, UdpSocket};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use crate::wasi::state::CallState;

type Socket = Resource<UdpSocket>;
type Streams = (Resource<IncomingDatagramStream>, Resource<OutgoingDatagramStream>);

impl Host for CallState {}

impl HostUdpSocket for CallState {
    async fn start_bind(&mut self, socket: Socket, net: Resource<Network>, to: IpSocketAddress) -> SocketResult<()> {
        self.may_bind(Capability::Udp, to.into())?;
        self.sockets().start_bind(socket, net, to).await
    }

    fn finish_bind(&mut self, socket: Socket) -> SocketResult<()> {
        self.sockets().finish_bind(socket)
    }

    async fn stream(&mut self, socket: Socket, to: Option<IpSocketAddress>) -> SocketResult<Streams> {
        let mut to = to;
        if let Some(address) = to {
            let asked = self.ask_before_socket(Capability::Udp, address.into()).await.map_err(SocketError::trap)?;
            self.may_send(asked)?;
            to = Some(asked.into());
        }
        self.sockets().stream(socket, to).await
    }

    fn local_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        self.sockets().local_address(socket)
    }

    fn remote_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        self.sockets().remote_address(socket)
    }

    fn address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
        HostUdpSocket::address_family(&mut self.sockets(), socket)
    }

    fn unicast_hop_limit(&mut self, socket: Socket) -> SocketResult<u8> {
        self.sockets().unicast_hop_limit(socket)
    }

    fn set_unicast_hop_limit(&mut self, socket: Socket, value: u8) -> SocketResult<()> {
        self.sockets().set_unicast_hop_limit(socket, value)
    }

    fn receive_buffer_size(&mut self, socket: Socket) -> SocketResult<u64> {
        HostUdpSocket::receive_buffer_size(&mut self.sockets(), socket)
    }

    fn set_receive_buffer_size(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        HostUdpSocket::set_receive_buffer_size(&mut self.sockets(), socket, value)
    }

    fn send_buffer_size(&mut self, socket: Socket) -> SocketResult<u64> {
        HostUdpSocket::send_buffer_size(&mut self.sockets(), socket)
    }

    fn set_send_buffer_size(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        HostUdpSocket::set_send_buffer_size(&mut self.sockets(), socket, value)
    }

    fn subscribe(&mut self, socket: Socket) -> wasmtime::Result<Resource<DynPollable>> {
        HostUdpSocket::subscribe(&mut self.sockets(), socket)
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        HostUdpSocket::drop(&mut self.sockets(), socket)
    }
}

impl HostIncomingDatagramStream for CallState {
    fn receive(
        &mut self,
        stream: Resource<IncomingDatagramStream>,
        datagrams_max: u64,
    ) -> SocketResult<Vec<IncomingDatagram>> {
        let datagrams = self.sockets().receive(stream, datagrams_max)?;
        let bytes = datagrams.iter().map(|datagram| datagram.data.len() as u64).sum();
        // WASI has no code for a quota that is used up; the call's limits are told with its
        // outcome.
        if self.socket_net().charge_ingress(bytes) { Ok(datagrams) } else { Err(ErrorCode::OutOfMemory.into()) }
    }

    fn subscribe(&mut self, stream: Resource<IncomingDatagramStream>) -> wasmtime::Result<Resource<DynPollable>> {
        HostIncomingDatagramStream::subscribe(&mut self.sockets(), stream)
    }

    fn drop(&mut self, stream: Resource<IncomingDatagramStream>) -> wasmtime::Result<()> {
        HostIncomingDatagramStream::drop(&mut self.sockets(), stream)
    }
}

impl HostOutgoingDatagramStream for CallState {
    fn check_send(&mut self, stream: Resource<OutgoingDatagramStream>) -> SocketResult<u64> {
        self.sockets().check_send(stream)
    }

    /// Sends the packets before the first one that may not be sent; an error is that of the first
    /// packet alone.
    fn send(
        &mut self,
        stream: Resource<OutgoingDatagramStream>,
        mut datagrams: Vec<OutgoingDatagram>,
    ) -> SocketResult<u64> {
        let mut bytes = 0_u64;
        for (number, datagram) in datagrams.iter().enumerate() {
            match self.may_go(datagram) {
                Ok(charged_bytes) => bytes = bytes.saturating_add(charged_bytes),
                Err(error) if number == 0 => return Err(error),
                Err(_) => {
                    datagrams.truncate(number);
                    break;
                }
            }
        }
        let sizes: Vec<u64> = datagrams.iter().map(|datagram| datagram.data.len() as u64).collect();
        let sent = self.sockets().send(stream, datagrams);
        let count = sent.as_ref().map_or(0, |count| usize::try_from(*count).unwrap_or(usize::MAX));
        let sent_bytes: u64 = sizes.iter().take(count).sum();
        self.socket_net().give_back_egress(bytes.saturating_sub(sent_bytes));
        sent
    }

    fn subscribe(&mut self, stream: Resource<OutgoingDatagramStream>) -> wasmtime::Result<Resource<DynPollable>> {
        HostOutgoingDatagramStream::subscribe(&mut self.sockets(), stream)
    }

    async fn drop(&mut self, stream: Resource<OutgoingDatagramStream>) -> wasmtime::Result<()> {
        HostOutgoingDatagramStream::drop(&mut self.sockets(), stream).await
    }
}

impl CallState {
    /// Charges one packet, where it may go to its address. One without an address goes where the
    /// socket is connected to, which was decided on then.
    fn may_go(&mut self, datagram: &OutgoingDatagram) -> SocketResult<u64> {
        if let Some(to) = datagram.remote_address {
            self.may_send(SocketAddr::from(to))?;
        }
        let bytes = datagram.data.len() as u64;
        let net = self.socket_net();
        let taken = net.take_egress(bytes);
        if taken < bytes {
            net.give_back_egress(taken);
            return Err(ErrorCode::OutOfMemory.into());
        }
        Ok(bytes)
    }
}
