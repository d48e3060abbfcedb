//! Operations that no rule allows, and that a person may allow while the guest waits.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The operation that a guest is about to begin.
#[derive(Debug, Serialize, Deserialize)]
pub enum PermissionRequest {
    /// An HTTP request.
    Request(HttpWanted),
    /// A TCP connection to this address.
    Connect(SocketAddr),
    /// Packets to this address.
    Send(SocketAddr),
}

/// An HTTP request, as the guest wrote it.
#[derive(Debug, Serialize, Deserialize)]
pub struct HttpWanted {
    /// Its method.
    pub method: String,
    /// Its scheme.
    pub scheme: String,
    /// Host and port.
    pub authority: String,
    /// Path and query.
    pub target: String,
}

/// A message of the host about a permission request.
#[derive(Debug, Serialize, Deserialize)]
pub enum PermissionReply {
    /// A person is asked now, and the call waits.
    Waits,
    /// The operation can begin; it is decided on then. For a socket, with the address to connect
    /// to.
    Goes(Option<SocketAddr>),
    /// The call ends here, perhaps because it is refused for this reason.
    Ended(Option<String>),
}
