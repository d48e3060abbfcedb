//! UDP sockets of a guest in a sandbox process.
use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::Capability;
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{UdpWanted, UdpWants};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::{DynPollable, Network, Pollable, SocketError, SocketResult, subscribe};

use super::bindings::wasi::sockets::udp::{
    Host, HostIncomingDatagramStream, HostOutgoingDatagramStream, HostUdpSocket, IncomingDatagram, OutgoingDatagram,
};
use super::bindings::wasi::sockets::udp_create_socket;
use super::error_code;
use super::udp_link::{Connected, Opened, Route, UdpLink, is_remote};
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;

/// Packets that are sent or received at once, as in wasmtime-wasi.
const PACKETS_MAX: usize = 16;

/// A guest's handle.
pub(super) type Socket = Resource<UdpSocket>;

/// A socket: its options, and the host's socket.
pub struct UdpSocket {
    outside: Arc<dyn Outside>,
    family: IpAddressFamily,
    options: SocketOptions,
    binding: bool,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    link: Option<UdpLink>,
    /// Held while a task of a guest of WASI 0.3 binds it or sends.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The packets that come.
pub struct Incoming(UdpLink);

/// The packets that go.
pub struct Outgoing {
    connected: Connected,
    permitted: usize,
}

#[wasmtime_wasi::async_trait]
impl Pollable for UdpSocket {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl Pollable for Incoming {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| self.0.sides().poll_packet(context)).await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Outgoing {
    async fn ready(&mut self) {}
}

impl Host for CallState {}

impl udp_create_socket::Host for CallState {
    fn create_udp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Socket> {
        let outside = self.new_socket()?;
        let options = SocketOptions::default();
        let turn = Arc::default();
        let socket =
            UdpSocket { outside, family, options, binding: false, local: None, remote: None, link: None, turn };
        Ok(self.table().push(socket)?)
    }
}

impl CallState {
    pub(super) fn udp_socket(&mut self, socket: &Socket) -> SocketResult<&mut UdpSocket> {
        Ok(self.table().get_mut(socket)?)
    }

    /// Binds a socket, if it may be bound to this address.
    pub(super) async fn bind_udp(&mut self, socket: &Socket, to: SocketAddr) -> SocketResult<()> {
        self.may_bind(Capability::Udp, to)?;
        let socket = self.udp_socket(socket)?;
        if socket.local.is_some() {
            return Err(ErrorCode::InvalidState.into());
        }
        if to.is_ipv6() != socket.is_six() {
            return Err(ErrorCode::InvalidArgument.into());
        }
        let opened = socket.opening().await?;
        socket.opened(opened);
        Ok(())
    }

    /// Connects a bound socket to an address that a person may be asked about, or to none.
    pub(super) async fn connect_udp(&mut self, socket: &Socket, to: Option<SocketAddr>) -> SocketResult<Connected> {
        let mut remote = to;
        if let Some(address) = remote {
            let asked = self.ask_before_socket(Capability::Udp, address).await;
            remote = Some(asked.map_err(SocketError::trap)?);
        }
        let own = self.udp_socket(socket)?;
        let Some(link) = own.link.clone() else { return Err(ErrorCode::InvalidState.into()) };
        if remote.is_some_and(|to| !own.reaches(to)) {
            return Err(ErrorCode::InvalidArgument.into());
        }
        link.ask(&UdpWants::Connect(remote)).await?;
        own.remote = remote;
        Ok(Connected { link, route: own.route() })
    }
}

impl UdpSocket {
    /// True for an address that a packet of it can go to.
    pub(super) fn reaches(&self, to: SocketAddr) -> bool {
        is_remote(to, self.family)
    }

    fn is_six(&self) -> bool {
        self.family == IpAddressFamily::Ipv6
    }

    /// Lets the host make the socket.
    pub(super) fn opening(&self) -> impl Future<Output = Result<Opened, ErrorCode>> + Send + use<> {
        let wanted = UdpWanted { six: self.is_six(), options: self.options.clone() };
        let outside = Arc::clone(&self.outside);
        async move {
            let (link, local) = UdpLink::open(&*outside, wanted).await?;
            Ok(Opened { link, local })
        }
    }

    pub(super) fn opened(&mut self, opened: Opened) {
        self.link = Some(opened.link);
        self.local = Some(opened.local);
    }

    /// Its door, if it is bound.
    pub(super) fn link(&self) -> Option<UdpLink> {
        self.link.clone()
    }

    pub(super) fn route(&self) -> Route {
        Route { remote: self.remote, family: self.family }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.remote.is_some()
    }

    pub(super) fn turn(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.turn)
    }
}

impl HostUdpSocket for CallState {
    async fn start_bind(
        &mut self,
        socket: Socket,
        network: Resource<Network>,
        to: IpSocketAddress,
    ) -> SocketResult<()> {
        self.table().get(&network)?;
        if self.udp_socket(&socket)?.binding {
            return Err(ErrorCode::ConcurrencyConflict.into());
        }
        self.bind_udp(&socket, to.into()).await?;
        self.udp_socket(&socket)?.binding = true;
        Ok(())
    }

    fn finish_bind(&mut self, socket: Socket) -> SocketResult<()> {
        let socket = self.udp_socket(&socket)?;
        if std::mem::take(&mut socket.binding) { Ok(()) } else { Err(ErrorCode::NotInProgress.into()) }
    }

    async fn stream(
        &mut self,
        socket: Socket,
        to: Option<IpSocketAddress>,
    ) -> SocketResult<(Resource<Incoming>, Resource<Outgoing>)> {
        let has_streams =
            self.table().iter_children(&socket)?.any(|child| child.is::<Incoming>() || child.is::<Outgoing>());
        if has_streams {
            return Err(SocketError::trap(wasmtime::Error::msg("the streams of a UDP socket are not dropped yet")));
        }
        let connected = self.connect_udp(&socket, to.map(SocketAddr::from)).await?;
        let incoming = self.table().push_child(Incoming(connected.link.clone()), &socket)?;
        let outgoing = self.table().push_child(Outgoing { connected, permitted: 0 }, &socket)?;
        Ok((incoming, outgoing))
    }

    fn local_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        let local = self.udp_socket(&socket)?.local.ok_or(ErrorCode::InvalidState)?;
        Ok(local.into())
    }

    fn remote_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        let remote = self.udp_socket(&socket)?.remote.ok_or(ErrorCode::InvalidState)?;
        Ok(remote.into())
    }

    fn address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.table().get(&socket)?.family)
    }

    options! {
        Socket, udp_socket:
        unicast_hop_limit as u8 = hop_limit, set_unicast_hop_limit = set_hop_limit;
        receive_buffer_size as u64 = receive_bytes, set_receive_buffer_size = set_receive_bytes;
        send_buffer_size as u64 = send_bytes, set_send_buffer_size = set_send_bytes;
    }

    fn subscribe(&mut self, socket: Socket) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), socket)
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        self.table().delete(socket)?;
        Ok(())
    }
}

impl HostIncomingDatagramStream for CallState {
    fn receive(&mut self, stream: Resource<Incoming>, packets_max: u64) -> SocketResult<Vec<IncomingDatagram>> {
        let link = self.table().get(&stream)?.0.clone();
        let mut sides = link.sides();
        let packets_max = usize::try_from(packets_max).unwrap_or(usize::MAX).min(PACKETS_MAX);
        let mut packets = Vec::new();
        while packets.len() < packets_max {
            let Some((from, data)) = sides.take_packet() else { break };
            packets.push(IncomingDatagram { data, remote_address: from.into() });
        }
        match sides.end() {
            Some(code) if packets.is_empty() && packets_max > 0 => Err(code.into()),
            _ => Ok(packets),
        }
    }

    fn subscribe(&mut self, stream: Resource<Incoming>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), stream)
    }

    fn drop(&mut self, stream: Resource<Incoming>) -> wasmtime::Result<()> {
        self.table().delete(stream)?;
        Ok(())
    }
}

impl HostOutgoingDatagramStream for CallState {
    fn check_send(&mut self, stream: Resource<Outgoing>) -> SocketResult<u64> {
        self.table().get_mut(&stream)?.permitted = PACKETS_MAX;
        Ok(PACKETS_MAX as u64)
    }

    /// Sends the packets before the first one that may not be sent. An error is always that of the
    /// first packet.
    async fn send(&mut self, stream: Resource<Outgoing>, packets: Vec<OutgoingDatagram>) -> SocketResult<u64> {
        let stream = self.table().get_mut(&stream)?;
        if packets.is_empty() {
            return Ok(0);
        }
        if packets.len() > std::mem::take(&mut stream.permitted) {
            return Err(SocketError::trap(wasmtime::Error::msg("more is sent than `check-send` permitted")));
        }
        let connected = stream.connected.clone();
        let mut sent = 0;
        for OutgoingDatagram { data, remote_address } in packets {
            let to = remote_address.map(SocketAddr::from);
            let done = match connected.route.target(to, data.len()) {
                Ok(to) => connected.link.send(to, data).await,
                Err(code) => Err(code),
            };
            match done {
                Ok(()) => sent += 1,
                Err(code) if sent == 0 => return Err(code.into()),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn subscribe(&mut self, stream: Resource<Outgoing>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), stream)
    }

    fn drop(&mut self, stream: Resource<Outgoing>) -> wasmtime::Result<()> {
        self.table().delete(stream)?;
        Ok(())
    }
}
