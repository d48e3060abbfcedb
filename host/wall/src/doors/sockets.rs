//! Sockets and lookups.
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::blob::Blob;
use super::socket_options::SocketOptions;

/// Bytes of a packet: the most that UDP allows.
pub const PACKET_BYTES_MAX: usize = u16::MAX as usize;

/// The connection that a guest asks for.
#[derive(Debug, Serialize, Deserialize)]
pub struct TcpWanted {
    /// The address to connect to.
    pub to: SocketAddr,
    /// True for an IPv6 socket.
    pub six: bool,
    /// The options that the guest set.
    pub options: SocketOptions,
}

/// A message of the host about a connection. Frames of data come between the first and the last.
#[derive(Debug, Serialize, Deserialize)]
pub enum TcpReply {
    /// It is connected, from this address.
    Connected(SocketAddr),
    /// It was not made.
    Refused(SocketCode),
    /// The server sends no more.
    Ended,
    /// It failed.
    Broken(SocketCode),
    /// The call has used up a limit, given by its key.
    Over(String),
}

/// The only message of a guest about its connection: it sends no more.
#[derive(Debug, Serialize, Deserialize)]
pub struct SendsNoMore;

/// The socket that a guest asks for.
#[derive(Debug, Serialize, Deserialize)]
pub struct UdpWanted {
    /// True for IPv6.
    pub six: bool,
    /// The options that the guest set.
    pub options: SocketOptions,
}

/// A message of a guest about packets.
#[derive(Debug, Serialize, Deserialize)]
pub enum UdpWants {
    /// Restricts packets to this address; or, without one, lifts the restriction.
    Connect(Option<SocketAddr>),
    /// Sends a packet.
    Send(Option<SocketAddr>, Blob),
}

/// A message of the host about packets.
#[derive(Debug, Serialize, Deserialize)]
pub enum UdpReply {
    /// The answer to a message of the guest. The first one has the address that the socket is bound
    /// to.
    Done(Result<Option<SocketAddr>, SocketCode>),
    /// A packet came.
    Received(SocketAddr, Blob),
    /// The call has used its limit of bytes received.
    Over,
}

/// The addresses of a name.
pub type NameAddresses = Result<Vec<IpAddr>, SocketCode>;

/// An error of wasi:sockets.
#[allow(missing_docs, reason = "the words of wasi:sockets, which has them documented")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketCode {
    Unknown,
    AccessDenied,
    NotSupported,
    InvalidArgument,
    OutOfMemory,
    Timeout,
    InvalidState,
    NewSocketLimit,
    AddressNotBindable,
    AddressInUse,
    RemoteUnreachable,
    ConnectionRefused,
    ConnectionReset,
    ConnectionAborted,
    DatagramTooLarge,
    NameUnresolvable,
    TemporaryResolverFailure,
    PermanentResolverFailure,
}

/// True for an address that a socket can be connected to, as in wasmtime-wasi. `six` is true for an
/// IPv6 socket.
#[must_use]
pub fn is_remote(to: SocketAddr, six: bool) -> bool {
    let of_family = match to.ip() {
        IpAddr::V4(_) => !six,
        IpAddr::V6(address) => {
            let is_compatible = matches!(address.segments(), [0, 0, 0, 0, 0, 0, a, b] if a != 0 || b > 1);
            six && !is_compatible && address.to_ipv4_mapped().is_none()
        }
    };
    of_family && !to.ip().is_unspecified() && to.port() != 0
}

/// True for an address that a TCP socket can be connected to.
#[must_use]
pub fn can_connect(to: SocketAddr, six: bool) -> bool {
    is_remote(to, six) && is_unicast(to.ip())
}

fn is_unicast(to: IpAddr) -> bool {
    !to.is_multicast() && !matches!(to, IpAddr::V4(four) if four.is_broadcast())
}
