//! The process at the other end of a Unix socket.
use std::io;
use std::os::fd::AsFd;

use rustix::process::Uid;

#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its user.
    pub uid: Uid,
    /// Its number.
    pub pid: u32,
}

/// Asks the kernel.
///
/// # Errors
/// The socket has no other end, or the system is not Linux.
#[cfg(target_os = "linux")]
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(Peer { uid: credentials.uid, pid: credentials.pid.as_raw_nonzero().get().cast_unsigned() })
}

/// See above.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn peer(_: impl AsFd) -> io::Result<Peer> {
    Err(io::ErrorKind::Unsupported.into())
}
