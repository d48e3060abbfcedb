//! Why a request has no response, or an incomplete one.
use serde::{Deserialize, Serialize};

/// An error of a request, in wasi:http's terms, as far as the host causes it. None contains an
/// address or a path of the host, since the guest sees them.
#[allow(missing_docs, reason = "the words of wasi:http, which has them documented")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpFault {
    DnsTimeout,
    DnsError { rcode: String },
    DestinationUnavailable,
    DestinationIpUnroutable,
    ConnectionRefused,
    ConnectionTerminated,
    ConnectionTimeout,
    ConnectionReadTimeout,
    ConnectionLimitReached,
    TlsProtocolError,
    TlsCertificateError,
    TlsAlertReceived { alert_id: u8, alert_message: String },
    HttpRequestDenied,
    HttpRequestBodySize(u64),
    HttpRequestUriInvalid,
    HttpRequestHeaderSectionSize(u32),
    HttpRequestTrailerSectionSize(u32),
    HttpResponseIncomplete,
    HttpResponseHeaderSectionSize(Option<u32>),
    HttpResponseBodySize(u64),
    HttpResponseTrailerSectionSize(u32),
    HttpResponseContentCoding(String),
    HttpResponseTimeout,
    HttpUpgradeFailed,
    HttpProtocolError,
    ConfigurationError,
}
