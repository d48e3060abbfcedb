//! The first message on a door. Must not hold: what comes after it.
use serde::{Deserialize, Serialize};

use crate::caller::consent::Wish;
use crate::wasi::http;
use crate::wasi::sockets::outside::{TcpWanted, UdpWanted};

/// The first message on a door: the operation that it is for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Opening {
    /// One HTTP request.
    Http(Box<http::outside::RequestHead>),
    /// The operations of the call on the state that it keeps.
    State,
    /// The addresses of a name.
    Lookup(String),
    /// A TCP connection.
    Tcp(TcpWanted),
    /// A socket for packets.
    Udp(UdpWanted),
    /// A question to a person, should no rule allow what the guest is about to do.
    Consent(Wish),
}
