//! Reasons why a request has no answer.
use std::net::IpAddr;
use std::time::Duration;

use toolcell_policy::AddressClass;

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The address has no host, or a scheme other than `http` and `https`.
    #[error("the address has no host, or is neither http nor https")]
    Address,
    /// The machine has no root certificates, and the address is `https`.
    #[error("the machine has no certificate authorities: install them, or name a file in SSL_CERT_FILE")]
    NoRoots,
    /// Every address of the host is of a kind that is not connected to.
    #[error("{0} is {words}", words = .1.describe())]
    Refused(IpAddr, AddressClass),
    /// Looking up the name, TCP or TLS failed.
    #[error("no connection: {0}")]
    Connect(#[source] std::io::Error),
    /// Looking up the name and TCP took too long.
    #[error("no connection within {0:?}")]
    ConnectTime(Duration),
    /// TLS took too long.
    #[error("no connection within {0:?}")]
    TlsTime(Duration),
    /// The answer took too long.
    #[error("it does not answer within {0:?}")]
    Time(Duration),
    /// The answer is not HTTP, or was cut off.
    #[error("{0}")]
    Http(#[source] hyper::Error),
    /// The answer changes the protocol, which nobody asked for.
    #[error("it changes the protocol")]
    Upgrade,
    /// The answer is longer than allowed.
    #[error("it answers with more than {0} bytes")]
    TooLong(usize),
}

impl OutboundError {
    /// True if another attempt would fail the same way.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(..) | Self::Address | Self::NoRoots)
    }
}
