//! Faults of requests, in the words of wasi:http. Must not hold: reactions to them.
//!
//! None of these texts names an address or a path of the host: the guest sees them.
use std::error::Error as StdError;
use std::io;

use wasmtime_wasi_http::Error;

use crate::wasi::net::{CallNet, LookupError, OverDirection};

/// Why sending a guest's body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    /// More or fewer bytes than its `Content-Length` says.
    #[error("the body has not the length that its header says")]
    Length {
        /// The number of bytes, as far as it is known.
        sent_bytes: u64,
    },
    /// Too many trailer fields, or too large.
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

/// The error for a limit on the call's bytes, where one was reached.
pub(super) fn over(net: &CallNet) -> Option<Error> {
    Some(match net.over()? {
        OverDirection::Egress => Error::HttpRequestBodySize(Some(net.limits().egress_bytes)),
        OverDirection::Ingress => Error::HttpResponseBodySize(Some(net.limits().ingress_bytes)),
    })
}

/// The error for a fault of hyper's, while a call's request was sent or its response received.
pub(super) fn of_hyper(error: &hyper::Error, net: &CallNet) -> Error {
    if let Some(over) = over(net) {
        return over;
    }
    if let Some(fault) = cause::<BodyFault>(error) {
        return of_body(*fault);
    }
    if error.is_parse_too_large() {
        return Error::HttpResponseHeaderSectionSize(Some(clamped(net.limits().header_bytes)));
    }
    if error.is_incomplete_message() {
        return Error::HttpResponseIncomplete;
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => Error::HttpResponseIncomplete,
        // Malformed chunks, for instance.
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Error::HttpProtocolError,
        Some(_) => Error::ConnectionTerminated,
        None if error.is_canceled() || error.is_closed() => Error::ConnectionTerminated,
        None => Error::HttpProtocolError,
    }
}

fn of_body(fault: BodyFault) -> Error {
    match fault {
        BodyFault::Length { sent_bytes } => Error::HttpRequestBodySize(Some(sent_bytes)),
        BodyFault::Trailers { bytes } => {
            Error::HttpRequestTrailerSectionSize(Some(u32::try_from(bytes).unwrap_or(u32::MAX)))
        }
        BodyFault::Aborted => Error::HttpProtocolError,
    }
}

/// A name that was not found.
pub(super) fn of_lookup(error: &LookupError) -> Error {
    let code = |rcode: &str| Error::DnsError { rcode: Some(rcode.to_owned()), info_code: None };
    match error {
        LookupError::Timeout => Error::DnsTimeout,
        LookupError::NoName => code("NXDOMAIN"),
        LookupError::NoAddress => code("NODATA"),
        LookupError::Failed(_) => code("SERVFAIL"),
    }
}

/// A connection that was not made.
pub(super) fn of_connect(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Error::ConnectionTerminated,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Error::DestinationIpUnroutable,
        _ => Error::DestinationUnavailable,
    }
}

/// A handshake that failed.
pub(super) fn of_tls(error: &io::Error) -> Error {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            Error::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) => Error::TlsProtocolError,
        None if error.kind() == io::ErrorKind::UnexpectedEof => Error::ConnectionTerminated,
        None => Error::TlsProtocolError,
    }
}

/// A count as wasi:http has it.
pub(super) fn clamped(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
