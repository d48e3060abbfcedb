//! The host's errors of a request, in wasi:http's terms.
use toolcell_wall::doors::http_fault::HttpFault;
use wasmtime_wasi_http::Error;

/// The error that the guest gets.
pub(super) fn error(fault: HttpFault) -> Error {
    match fault {
        HttpFault::DnsTimeout => Error::DnsTimeout,
        HttpFault::DnsError { rcode } => Error::DnsError { rcode: Some(rcode), info_code: None },
        HttpFault::DestinationUnavailable => Error::DestinationUnavailable,
        HttpFault::DestinationIpUnroutable => Error::DestinationIpUnroutable,
        HttpFault::ConnectionRefused => Error::ConnectionRefused,
        HttpFault::ConnectionTerminated => Error::ConnectionTerminated,
        HttpFault::ConnectionTimeout => Error::ConnectionTimeout,
        HttpFault::ConnectionReadTimeout => Error::ConnectionReadTimeout,
        HttpFault::ConnectionLimitReached => Error::ConnectionLimitReached,
        HttpFault::TlsProtocolError => Error::TlsProtocolError,
        HttpFault::TlsCertificateError => Error::TlsCertificateError,
        HttpFault::TlsAlertReceived { alert_id, alert_message } => {
            Error::TlsAlertReceived { alert_id: Some(alert_id), alert_message: Some(alert_message) }
        }
        HttpFault::HttpRequestDenied => Error::HttpRequestDenied,
        HttpFault::HttpRequestBodySize(bytes) => Error::HttpRequestBodySize(Some(bytes)),
        HttpFault::HttpRequestUriInvalid => Error::HttpRequestUriInvalid,
        HttpFault::HttpRequestHeaderSectionSize(bytes) => Error::HttpRequestHeaderSectionSize(Some(bytes)),
        HttpFault::HttpRequestTrailerSectionSize(bytes) => Error::HttpRequestTrailerSectionSize(Some(bytes)),
        HttpFault::HttpResponseIncomplete => Error::HttpResponseIncomplete,
        HttpFault::HttpResponseHeaderSectionSize(bytes) => Error::HttpResponseHeaderSectionSize(bytes),
        HttpFault::HttpResponseBodySize(bytes) => Error::HttpResponseBodySize(Some(bytes)),
        HttpFault::HttpResponseTrailerSectionSize(bytes) => Error::HttpResponseTrailerSectionSize(Some(bytes)),
        HttpFault::HttpResponseContentCoding(coding) => Error::HttpResponseContentCoding(Some(coding)),
        HttpFault::HttpResponseTimeout => Error::HttpResponseTimeout,
        HttpFault::HttpUpgradeFailed => Error::HttpUpgradeFailed,
        HttpFault::HttpProtocolError => Error::HttpProtocolError,
        HttpFault::ConfigurationError => Error::ConfigurationError,
    }
}
