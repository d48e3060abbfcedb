//! The system's errors in terms of wasi:sockets.
use std::io;

use rustix::io::Errno;
use toolcell_wall::doors::sockets::SocketCode;

/// The code for an error, as in wasmtime-wasi.
pub(super) fn code_of(error: &io::Error) -> SocketCode {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => SocketCode::AccessDenied,
        Some(Errno::ADDRINUSE) => SocketCode::AddressInUse,
        Some(Errno::ADDRNOTAVAIL) => SocketCode::AddressNotBindable,
        Some(Errno::TIMEDOUT) => SocketCode::Timeout,
        Some(Errno::CONNREFUSED) => SocketCode::ConnectionRefused,
        Some(Errno::CONNRESET) => SocketCode::ConnectionReset,
        Some(Errno::CONNABORTED) => SocketCode::ConnectionAborted,
        Some(Errno::INVAL) => SocketCode::InvalidArgument,
        Some(Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::NETDOWN | Errno::NETUNREACH) => {
            SocketCode::RemoteUnreachable
        }
        Some(Errno::ISCONN | Errno::NOTCONN | Errno::DESTADDRREQ) => SocketCode::InvalidState,
        Some(Errno::MFILE | Errno::NFILE) => SocketCode::NewSocketLimit,
        Some(Errno::MSGSIZE) => SocketCode::DatagramTooLarge,
        Some(Errno::NOMEM | Errno::NOBUFS) => SocketCode::OutOfMemory,
        Some(Errno::OPNOTSUPP) => SocketCode::NotSupported,
        _ => SocketCode::Unknown,
    }
}
