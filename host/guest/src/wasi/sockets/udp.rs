//! UDP sockets of a guest in a sandbox process.
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use toolcell_policy::Capability;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{self, PACKET_BYTES_MAX, UdpReply, UdpWanted, UdpWants};
use toolcell_wall::doors::{Opening, decode};
use toolcell_walls::door::{self, DoorError, DoorFrame, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::{DynPollable, Network, Pollable, SocketError, SocketResult, subscribe};

use super::bindings::wasi::sockets::udp::{
    Host, HostIncomingDatagramStream, HostOutgoingDatagramStream, HostUdpSocket, IncomingDatagram, OutgoingDatagram,
};
use super::bindings::wasi::sockets::udp_create_socket;
use super::{error_code, set};
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;

/// Packets that are sent or received at once, as in wasmtime-wasi.
const PACKETS_MAX: usize = 16;

/// Packets that arrived and are still unread. More are dropped, as UDP may.
const WAITING_MAX: usize = 64;

/// A socket: its options, and the host's socket.
pub struct UdpSocket {
    outside: Arc<dyn Outside>,
    family: IpAddressFamily,
    options: SocketOptions,
    binding: bool,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    link: Option<UdpLink>,
}

/// The packets that come.
pub struct Incoming(UdpLink);

/// The packets that go.
pub struct Outgoing {
    link: UdpLink,
    remote: Option<SocketAddr>,
    family: IpAddressFamily,
    permitted: usize,
}

/// The door of a socket, which its streams share. A guest does one thing at a time, so nobody waits
/// for it.
#[derive(Clone)]
struct UdpLink(Arc<Mutex<Sides>>);

struct Sides {
    reader: FrameReader,
    writer: Option<FrameWriter>,
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    answer: Option<Result<Option<SocketAddr>, ErrorCode>>,
    /// Why nothing more comes.
    end: Option<ErrorCode>,
}

impl Sides {
    /// Handles one message of the host.
    fn poll_said(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let said = match ready!(self.reader.poll_frame(context, HOST_BYTES_MAX)) {
            Ok(Some(DoorFrame::Message(message))) => decode(&message).map_err(DoorError::from),
            Ok(_) => Err(DoorError::Closed),
            Err(error) => Err(error),
        };
        match said {
            Ok(UdpReply::Done(done)) => self.answer = Some(done.map_err(error_code)),
            Ok(UdpReply::Received(from, Blob(data))) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back((from, data));
            }
            Ok(UdpReply::Received(..)) => {}
            Ok(UdpReply::Over) => self.end = Some(ErrorCode::OutOfMemory),
            Err(_) => self.end = Some(ErrorCode::ConnectionAborted),
        }
        Poll::Ready(())
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<SocketAddr>, ErrorCode>> {
        loop {
            match (self.answer.take(), self.end) {
                (Some(answer), _) => return Poll::Ready(answer),
                (None, Some(code)) if code != ErrorCode::OutOfMemory => return Poll::Ready(Err(code)),
                _ => ready!(self.poll_said(context)),
            }
        }
    }

    fn poll_packet(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.waiting.is_empty() && self.end.is_none() {
            ready!(self.poll_said(context));
        }
        Poll::Ready(())
    }
}

impl UdpLink {
    async fn open(outside: &dyn Outside, wanted: UdpWanted) -> Result<(Self, SocketAddr), ErrorCode> {
        let opened = door::open(outside, &Opening::Udp(wanted)).await;
        let (reader, writer) = opened.map_err(|_| ErrorCode::NewSocketLimit)?;
        let sides = Sides { reader, writer: Some(writer), waiting: VecDeque::new(), answer: None, end: None };
        let link = Self(Arc::new(Mutex::new(sides)));
        match link.answer().await? {
            Some(local) => Ok((link, local)),
            None => Err(ErrorCode::Unknown),
        }
    }

    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self) -> Result<Option<SocketAddr>, ErrorCode> {
        std::future::poll_fn(|context| self.sides().poll_answer(context)).await
    }

    /// Asks the host to do this.
    async fn ask(&self, wants: &UdpWants) -> Result<Option<SocketAddr>, ErrorCode> {
        let taken = self.sides().writer.take();
        let Some(mut writer) = taken else { return Err(ErrorCode::ConnectionAborted) };
        let mut is_sent = false;
        let answer = {
            // The host may only read on once its packets are read, so this does both at once.
            let mut sending = std::pin::pin!(writer.message(wants));
            std::future::poll_fn(|context| {
                if !is_sent {
                    match sending.as_mut().poll(context) {
                        Poll::Ready(Ok(())) => is_sent = true,
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(ErrorCode::ConnectionAborted)),
                        Poll::Pending => {}
                    }
                }
                self.sides().poll_answer(context)
            })
            .await
        };
        if is_sent {
            self.sides().writer = Some(writer);
        }
        answer
    }
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

/// True for an address that a socket of this family sends to.
fn is_remote(to: SocketAddr, family: IpAddressFamily) -> bool {
    sockets::is_remote(to, family == IpAddressFamily::Ipv6)
}

impl Host for CallState {}

impl udp_create_socket::Host for CallState {
    fn create_udp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        let outside = self.new_socket()?;
        let options = SocketOptions::default();
        let socket = UdpSocket { outside, family, options, binding: false, local: None, remote: None, link: None };
        Ok(self.table().push(socket)?)
    }
}

impl CallState {
    fn udp_socket(&mut self, socket: &Resource<UdpSocket>) -> SocketResult<&mut UdpSocket> {
        Ok(self.table().get_mut(socket)?)
    }
}

impl HostUdpSocket for CallState {
    async fn start_bind(
        &mut self,
        socket: Resource<UdpSocket>,
        network: Resource<Network>,
        to: IpSocketAddress,
    ) -> SocketResult<()> {
        self.table().get(&network)?;
        self.may_bind(Capability::Udp, to.into())?;
        let socket = self.udp_socket(&socket)?;
        if socket.binding {
            return Err(ErrorCode::ConcurrencyConflict.into());
        }
        if socket.local.is_some() {
            return Err(ErrorCode::InvalidState.into());
        }
        let six = matches!(socket.family, IpAddressFamily::Ipv6);
        if SocketAddr::from(to).is_ipv6() != six {
            return Err(ErrorCode::InvalidArgument.into());
        }
        let wanted = UdpWanted { six, options: socket.options.clone() };
        let (link, local) = UdpLink::open(&*socket.outside, wanted).await?;
        (socket.link, socket.local, socket.binding) = (Some(link), Some(local), true);
        Ok(())
    }

    fn finish_bind(&mut self, socket: Resource<UdpSocket>) -> SocketResult<()> {
        let socket = self.udp_socket(&socket)?;
        if std::mem::take(&mut socket.binding) { Ok(()) } else { Err(ErrorCode::NotInProgress.into()) }
    }

    async fn stream(
        &mut self,
        socket: Resource<UdpSocket>,
        to: Option<IpSocketAddress>,
    ) -> SocketResult<(Resource<Incoming>, Resource<Outgoing>)> {
        let has_streams =
            self.table().iter_children(&socket)?.any(|child| child.is::<Incoming>() || child.is::<Outgoing>());
        if has_streams {
            return Err(SocketError::trap(wasmtime::Error::msg("the streams of a UDP socket are not dropped yet")));
        }
        let mut remote = to.map(SocketAddr::from);
        if let Some(address) = remote {
            let asked = self.ask_before_socket(Capability::Udp, address).await;
            remote = Some(asked.map_err(SocketError::trap)?);
        }
        let own = self.udp_socket(&socket)?;
        let Some(link) = own.link.clone() else { return Err(ErrorCode::InvalidState.into()) };
        if remote.is_some_and(|to| !is_remote(to, own.family)) {
            return Err(ErrorCode::InvalidArgument.into());
        }
        link.ask(&UdpWants::Connect(remote)).await?;
        own.remote = remote;
        let outgoing = Outgoing { link: link.clone(), remote, family: own.family, permitted: 0 };
        let incoming = self.table().push_child(Incoming(link), &socket)?;
        let outgoing = self.table().push_child(outgoing, &socket)?;
        Ok((incoming, outgoing))
    }

    fn local_address(&mut self, socket: Resource<UdpSocket>) -> SocketResult<IpSocketAddress> {
        let local = self.udp_socket(&socket)?.local.ok_or(ErrorCode::InvalidState)?;
        Ok(local.into())
    }

    fn remote_address(&mut self, socket: Resource<UdpSocket>) -> SocketResult<IpSocketAddress> {
        let remote = self.udp_socket(&socket)?.remote.ok_or(ErrorCode::InvalidState)?;
        Ok(remote.into())
    }

    fn address_family(&mut self, socket: Resource<UdpSocket>) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.table().get(&socket)?.family)
    }

    fn unicast_hop_limit(&mut self, socket: Resource<UdpSocket>) -> SocketResult<u8> {
        Ok(self.udp_socket(&socket)?.options.hop_limit())
    }

    fn set_unicast_hop_limit(&mut self, socket: Resource<UdpSocket>, value: u8) -> SocketResult<()> {
        set(self.udp_socket(&socket)?.options.set_hop_limit(value))
    }

    fn receive_buffer_size(&mut self, socket: Resource<UdpSocket>) -> SocketResult<u64> {
        Ok(self.udp_socket(&socket)?.options.receive_bytes())
    }

    fn set_receive_buffer_size(&mut self, socket: Resource<UdpSocket>, value: u64) -> SocketResult<()> {
        set(self.udp_socket(&socket)?.options.set_receive_bytes(value))
    }

    fn send_buffer_size(&mut self, socket: Resource<UdpSocket>) -> SocketResult<u64> {
        Ok(self.udp_socket(&socket)?.options.send_bytes())
    }

    fn set_send_buffer_size(&mut self, socket: Resource<UdpSocket>, value: u64) -> SocketResult<()> {
        set(self.udp_socket(&socket)?.options.set_send_bytes(value))
    }

    fn subscribe(&mut self, socket: Resource<UdpSocket>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), socket)
    }

    fn drop(&mut self, socket: Resource<UdpSocket>) -> wasmtime::Result<()> {
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
            let _ = sides.poll_packet(&mut Context::from_waker(Waker::noop()));
            let Some((from, data)) = sides.waiting.pop_front() else { break };
            packets.push(IncomingDatagram { data, remote_address: from.into() });
        }
        match sides.end {
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
        let link = stream.link.clone();
        let remote = stream.remote;
        let family = stream.family;
        let mut sent = 0;
        for OutgoingDatagram { data, remote_address } in packets {
            let to = remote_address.map(SocketAddr::from);
            let done = match to.or(remote) {
                _ if data.len() > PACKET_BYTES_MAX => Err(ErrorCode::DatagramTooLarge),
                Some(to) if is_remote(to, family) && remote.is_none_or(|remote| remote == to) => {
                    link.ask(&UdpWants::Send(Some(to), Blob(data))).await.map(drop)
                }
                _ => Err(ErrorCode::InvalidArgument),
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
