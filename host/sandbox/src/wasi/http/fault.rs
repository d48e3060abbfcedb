//! Errors of requests, in terms of wasi:http.
//!
//! None of these texts contains an address or a path of the host, since the guest sees them.
use std::error::Error as StdError;
use std::io;

use toolcell_wall::doors::http_fault::HttpFault;

use crate::wasi::net::{CallNet, LookupError, OverDirection};

/// Why sending a guest's body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    /// The number of bytes differs from its `Content-Length`.
    #[error("the body does not have the length in its header")]
    Length {
        /// The number of bytes, as far as it is known.
        sent_bytes: u64,
    },
    /// Too many trailer fields, or too large ones.
    #[error("the trailers are too large")]
    Trailers {
        /// Their size.
        bytes: u64,
    },
    /// The guest dropped it.
    #[error("the body was given up")]
    Aborted,
}

/// The first cause of a kind.
fn cause<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The error for a limit on the call's bytes, if one was reached.
pub(super) fn over(net: &CallNet) -> Option<HttpFault> {
    Some(match net.over()? {
        OverDirection::Egress => HttpFault::HttpRequestBodySize(net.limits().egress_bytes),
        OverDirection::Ingress => HttpFault::HttpResponseBodySize(net.limits().ingress_bytes),
    })
}

/// hyper's error while a call's request was sent or its response received.
pub(super) fn of_hyper(error: &hyper::Error, net: &CallNet) -> HttpFault {
    if let Some(over) = over(net) {
        return over;
    }
    if let Some(fault) = cause::<BodyFault>(error) {
        return of_body(*fault);
    }
    if error.is_parse_too_large() {
        return HttpFault::HttpResponseHeaderSectionSize(Some(clamped(net.limits().header_bytes)));
    }
    if error.is_incomplete_message() {
        return HttpFault::HttpResponseIncomplete;
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => HttpFault::HttpResponseIncomplete,
        // Malformed chunks, for instance.
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => HttpFault::HttpProtocolError,
        Some(_) => HttpFault::ConnectionTerminated,
        None if error.is_canceled() || error.is_closed() => HttpFault::ConnectionTerminated,
        None => HttpFault::HttpProtocolError,
    }
}

fn of_body(fault: BodyFault) -> HttpFault {
    match fault {
        BodyFault::Length { sent_bytes } => HttpFault::HttpRequestBodySize(sent_bytes),
        BodyFault::Trailers { bytes } => {
            HttpFault::HttpRequestTrailerSectionSize(u32::try_from(bytes).unwrap_or(u32::MAX))
        }
        BodyFault::Aborted => HttpFault::HttpProtocolError,
    }
}

/// A name that was not found.
pub(super) fn of_lookup(error: &LookupError) -> HttpFault {
    let code = |rcode: &str| HttpFault::DnsError { rcode: rcode.to_owned() };
    match error {
        LookupError::Timeout => HttpFault::DnsTimeout,
        LookupError::NoName => code("NXDOMAIN"),
        LookupError::NoAddress => code("NODATA"),
        LookupError::Failed(_) => code("SERVFAIL"),
    }
}

/// A connection that was not made.
pub(super) fn of_connect(error: &io::Error) -> HttpFault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => HttpFault::ConnectionRefused,
        io::ErrorKind::TimedOut => HttpFault::ConnectionTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => HttpFault::ConnectionTerminated,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => HttpFault::DestinationIpUnroutable,
        _ => HttpFault::DestinationUnavailable,
    }
}

/// A handshake that failed.
pub(super) fn of_tls(error: &io::Error) -> HttpFault {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            HttpFault::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            HttpFault::TlsAlertReceived { alert_id: u8::from(*alert), alert_message: format!("{alert:?}") }
        }
        Some(_) => HttpFault::TlsProtocolError,
        None if error.kind() == io::ErrorKind::UnexpectedEof => HttpFault::ConnectionTerminated,
        None => HttpFault::TlsProtocolError,
    }
}

/// A count as wasi:http's type.
pub(super) fn clamped(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
