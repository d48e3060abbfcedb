//! The messages about sockets and look-ups. Must not hold: sending them.
use std::io;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

use super::options::Options;
use crate::wasi::doors::bounded::{Blob, List};
use crate::wasi::net::ADDRESSES_MAX;

/// Bytes of a packet: the most that UDP has.
pub(crate) const PACKET_BYTES_MAX: usize = u16::MAX as usize;

/// The connection that a guest wants.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TcpWanted {
    pub(super) to: SocketAddr,
    /// True for a socket of IPv6.
    pub(super) six: bool,
    pub(super) options: Options,
}

#[cfg(any(test, feature = "drill"))]
impl TcpWanted {
    /// A connection to this address.
    pub(crate) fn plain(to: SocketAddr) -> Self {
        Self { to, six: to.is_ipv6(), options: Options::default() }
    }
}

/// A message of the host about a connection. Between the first and the last come frames of data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum TcpSaid {
    /// It is there, from this address.
    Connected(SocketAddr),
    /// It is not.
    Refused(Code),
    /// The server sends no more.
    Ended,
    /// It broke.
    Broken(Code),
    /// The call has used a limit, by its key.
    Over(String),
}

/// The only message of a guest about its connection: it sends no more.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SendsNoMore;

/// The socket that a guest wants for packets.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UdpWanted {
    /// True for IPv6.
    pub(super) six: bool,
    pub(super) options: Options,
}

#[cfg(any(test, feature = "drill"))]
impl UdpWanted {
    /// A socket of IPv4.
    pub(crate) fn plain() -> Self {
        Self { six: false, options: Options::default() }
    }
}

/// A message of a guest about packets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum UdpWants {
    /// Packets go to this address and come from it; or, without one, to and from any.
    Connect(Option<SocketAddr>),
    /// Sends a packet.
    Send(Option<SocketAddr>, Blob),
}

/// A message of the host about packets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum UdpSaid {
    /// The answer to a message of the guest; the first one says where the socket is bound.
    Done(Result<Option<SocketAddr>, Code>),
    /// A packet came.
    Received(SocketAddr, Blob),
    /// The call has used its limit of bytes received.
    Over,
}

/// The addresses of a name.
pub(crate) type Addresses = Result<List<IpAddr, ADDRESSES_MAX>, Code>;

/// wasi:sockets' errors.
macro_rules! codes {
    ($($code:ident),*) => {
        /// An error of wasi:sockets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) enum Code {
            $($code,)*
        }

        impl From<ErrorCode> for Code {
            fn from(code: ErrorCode) -> Self {
                match code {
                    $(ErrorCode::$code => Self::$code,)*
                }
            }
        }

        impl From<Code> for ErrorCode {
            fn from(code: Code) -> Self {
                match code {
                    $(Code::$code => Self::$code,)*
                }
            }
        }
    };
}

codes!(
    Unknown,
    AccessDenied,
    NotSupported,
    InvalidArgument,
    OutOfMemory,
    Timeout,
    ConcurrencyConflict,
    NotInProgress,
    WouldBlock,
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
    PermanentResolverFailure
);

impl From<&io::Error> for Code {
    /// As wasmtime-wasi has it.
    fn from(error: &io::Error) -> Self {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::PERM | Errno::ACCESS) => Self::AccessDenied,
            Some(Errno::ADDRINUSE) => Self::AddressInUse,
            Some(Errno::ADDRNOTAVAIL) => Self::AddressNotBindable,
            Some(Errno::TIMEDOUT) => Self::Timeout,
            Some(Errno::CONNREFUSED) => Self::ConnectionRefused,
            Some(Errno::CONNRESET) => Self::ConnectionReset,
            Some(Errno::CONNABORTED) => Self::ConnectionAborted,
            Some(Errno::INVAL) => Self::InvalidArgument,
            Some(Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::NETDOWN | Errno::NETUNREACH) => Self::RemoteUnreachable,
            Some(Errno::ISCONN | Errno::NOTCONN | Errno::DESTADDRREQ) => Self::InvalidState,
            Some(Errno::MFILE | Errno::NFILE) => Self::NewSocketLimit,
            Some(Errno::MSGSIZE) => Self::DatagramTooLarge,
            Some(Errno::NOMEM | Errno::NOBUFS) => Self::OutOfMemory,
            Some(Errno::OPNOTSUPP) => Self::NotSupported,
            _ => Self::Unknown,
        }
    }
}
