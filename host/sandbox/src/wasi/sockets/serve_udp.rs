//! The host's side of a UDP socket.
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use toolcell_policy::Capability;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::sockets::{PACKET_BYTES_MAX, SocketCode, UdpReply, UdpWanted, UdpWants};
use toolcell_walls::door::{DoorError, FrameReader, FrameWriter};

use super::Deciding;
use super::applied::apply;
use super::code::code_of;

/// Bytes of a message about a packet, without the packet.
const MESSAGE_BYTES: usize = 128;

/// A socket, and the only address that it sends to and receives from, if there is one.
struct Packets<'a> {
    deciding: Deciding<'a>,
    socket: UdpSocket,
    connected: Option<SocketAddr>,
}

/// Sends packets to where the guest may, and forwards those that come from there, charged to the
/// call.
pub(crate) async fn serve(
    deciding: Deciding<'_>,
    UdpWanted { six, options }: UdpWanted,
    mut reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    if !deciding.net.socket() {
        return writer.message(&UdpReply::Done(Err(SocketCode::NewSocketLimit))).await;
    }
    let bound = bind(six).await.and_then(|socket| Ok((socket.local_addr()?, socket)));
    let (local, socket) = match bound {
        Ok(bound) => bound,
        Err(error) => return writer.message(&UdpReply::Done(Err(code_of(&error)))).await,
    };
    apply(&options, &socket, six);
    writer.message(&UdpReply::Done(Ok(Some(local)))).await?;
    let mut packets = Packets { deciding, socket, connected: None };
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    let mut is_over = false;
    loop {
        tokio::select! {
            biased;
            wants = reader.message::<UdpWants>(PACKET_BYTES_MAX + MESSAGE_BYTES) => {
                let done = match wants {
                    Err(DoorError::Closed) => return Ok(()),
                    wants => packets.done(wants?).await,
                };
                writer.message(&UdpReply::Done(done.map(|()| None))).await?;
            }
            came = packets.socket.recv_from(&mut buffer), if !is_over => {
                // Errors belong to packets that were sent before; nobody waits for them.
                let Ok((bytes, from)) = came else { continue };
                let data = buffer.get(..bytes).unwrap_or_default();
                if !packets.accepts(from) {
                    continue;
                }
                is_over = !packets.deciding.net.charge_ingress(data.len() as u64);
                let said = if is_over { UdpReply::Over } else { UdpReply::Received(from, Blob(data.to_vec())) };
                writer.message(&said).await?;
            }
        }
    }
}

/// A socket on a port that the system chooses.
async fn bind(six: bool) -> io::Result<UdpSocket> {
    if !six {
        return UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await;
    }
    // IPv6 only, which must be set before it is bound.
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, None)?;
    socket.set_only_v6(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into())?;
    UdpSocket::from_std(socket.into())
}

impl Packets<'_> {
    async fn done(&mut self, wants: UdpWants) -> Result<(), SocketCode> {
        match wants {
            UdpWants::Connect(to) => {
                if to.is_some_and(|to| !self.deciding.permits(Capability::Udp, to)) {
                    return Err(SocketCode::AccessDenied);
                }
                self.connected = to;
                Ok(())
            }
            UdpWants::Send(to, Blob(data)) => self.send(to, &data).await,
        }
    }

    async fn send(&self, to: Option<SocketAddr>, data: &[u8]) -> Result<(), SocketCode> {
        let to = to.or(self.connected).ok_or(SocketCode::InvalidArgument)?;
        if self.connected.is_some_and(|connected| connected != to) {
            return Err(SocketCode::InvalidArgument);
        }
        if !self.deciding.permits(Capability::Udp, to) {
            return Err(SocketCode::AccessDenied);
        }
        let net = self.deciding.net;
        let bytes = data.len() as u64;
        let taken = net.take_egress(bytes);
        if taken < bytes {
            net.give_back_egress(taken);
            return Err(SocketCode::OutOfMemory);
        }
        self.socket.send_to(data, to).await.map(drop).map_err(|error| {
            net.give_back_egress(bytes);
            code_of(&error)
        })
    }

    /// True if the guest may receive packets from there: it may send there.
    fn accepts(&self, from: SocketAddr) -> bool {
        self.connected.is_none_or(|connected| connected == from) && self.deciding.decide(Capability::Udp, from).is_ok()
    }
}
