//! The messages about one request. Must not hold: sending them.
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use serde::{Deserialize, Serialize};
use wasmtime_wasi_http::{Error, RequestOptions};

use super::super::hooks::held_bytes_max;
use crate::wasi::doors::DoorError;
use crate::wasi::doors::bounded::{Blob, List};
use crate::wasi::net::NetLimits;

/// Fields of one message: more than wasi:http lets a guest have under the largest limits.
const FIELDS_MAX: usize = 20_000;

/// Bytes of a request's method and URI, the longest that the `http` crate takes, with room for the
/// rest of a head.
const LINE_BYTES_MAX: usize = 128 << 10;

/// The largest head or list of trailers, encoded, that a guest can make under these limits.
pub(crate) fn head_bytes_max(limits: &NetLimits) -> usize {
    held_bytes_max(limits).saturating_add(LINE_BYTES_MAX)
}

/// Header fields or trailers, in order.
pub(super) type Fields = List<(Blob, Blob), FIELDS_MAX>;

/// The head of a request, as the guest wrote it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestHead {
    method: String,
    scheme: String,
    authority: String,
    target: Option<String>,
    fields: Fields,
    waits: Waits,
    /// The whole body's length, where that is known; 0: no frame of a body follows.
    pub(super) body_bytes: Option<u64>,
}

/// The times that the guest wants to wait.
#[derive(Debug, Serialize, Deserialize)]
struct Waits {
    connect: Option<Duration>,
    first_byte: Option<Duration>,
    between_bytes: Option<Duration>,
}

/// The end of a guest's body. Before it come frames of data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum BodyEnd {
    /// It is whole.
    Whole,
    /// It is whole, with these trailers.
    Trailers(Fields),
    /// The guest gave it up.
    Aborted,
}

/// A message of the host. After the head come frames of data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The head of the response.
    Head(ResponseHead),
    /// The response is whole.
    Whole,
    /// The response is whole, with these trailers.
    Trailers(Fields),
    /// There is no response, or no more of it.
    Failed(Fault),
}

/// The head of a response.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) fields: Fields,
    /// True if nothing follows.
    pub(super) whole: bool,
}

impl RequestHead {
    pub(crate) fn new<B>(request: &Request<B>, options: Option<RequestOptions>, body_bytes: Option<u64>) -> Self {
        let RequestOptions { connect_timeout, first_byte_timeout, between_bytes_timeout } = options.unwrap_or_default();
        let uri = request.uri();
        Self {
            method: request.method().as_str().to_owned(),
            scheme: uri.scheme_str().unwrap_or_default().to_owned(),
            authority: uri.authority().map_or("", |authority| authority.as_str()).to_owned(),
            target: uri.path_and_query().map(|target| target.as_str().to_owned()),
            fields: fields(request.headers()),
            waits: Waits {
                connect: connect_timeout,
                first_byte: first_byte_timeout,
                between_bytes: between_bytes_timeout,
            },
            body_bytes,
        }
    }

    /// The request with this body.
    ///
    /// # Errors
    /// The head is none that wasi:http makes. Two lengths, or one that is none, are left to no
    /// server.
    pub(super) fn into_request<B>(self, body: B) -> Result<(Request<B>, RequestOptions), DoorError> {
        const WRONG: DoorError = DoorError::Wrong("a request's head is malformed");
        let mut uri = Uri::builder().scheme(self.scheme.as_str()).authority(self.authority.as_str());
        if let Some(target) = self.target {
            uri = uri.path_and_query(PathAndQuery::try_from(target).map_err(|_| WRONG)?);
        }
        let mut request = Request::new(body);
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).map_err(|_| WRONG)?;
        *request.uri_mut() = uri.build().map_err(|_| WRONG)?;
        *request.headers_mut() = self.fields.into_map().ok_or(WRONG)?;
        let mut lengths = request.headers().get_all(header::CONTENT_LENGTH).iter();
        let is_length = |value: &HeaderValue| {
            let digits = value.as_bytes();
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        if lengths.next().is_some_and(|length| !is_length(length)) || lengths.next().is_some() {
            return Err(WRONG);
        }
        let Waits { connect, first_byte, between_bytes } = self.waits;
        let options = RequestOptions {
            connect_timeout: connect,
            first_byte_timeout: first_byte,
            between_bytes_timeout: between_bytes,
        };
        Ok((request, options))
    }
}

/// Fields as they are sent.
pub(super) fn fields(map: &HeaderMap) -> Fields {
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        (Blob(name.as_str().as_bytes().to_vec()), Blob(value.as_bytes().to_vec()))
    };
    List(map.iter().map(field).collect())
}

impl Fields {
    /// The fields; `None` where one is none that HTTP has.
    pub(super) fn into_map(self) -> Option<HeaderMap> {
        let mut map = HeaderMap::new();
        for (Blob(name), Blob(value)) in self.0 {
            let name = HeaderName::from_bytes(&name).ok()?;
            map.try_append(name, HeaderValue::from_maybe_shared(bytes::Bytes::from(value)).ok()?).ok()?;
        }
        Some(map)
    }
}

/// wasi:http's errors, as many as the host causes.
macro_rules! faults {
    ($($plain:ident),*; $($sized:ident($size:ty)),*) => {
        /// An error of a request, in wasi:http's words.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub(super) enum Fault {
            $($plain,)*
            $($sized(Option<$size>),)*
            DnsError { rcode: Option<String>, info_code: Option<u16> },
            TlsAlertReceived { alert_id: Option<u8>, alert_message: Option<String> },
        }

        impl From<Error> for Fault {
            fn from(error: Error) -> Self {
                match error {
                    $(Error::$plain => Self::$plain,)*
                    $(Error::$sized(size) => Self::$sized(size),)*
                    Error::DnsError { rcode, info_code } => Self::DnsError { rcode, info_code },
                    Error::TlsAlertReceived { alert_id, alert_message } => {
                        Self::TlsAlertReceived { alert_id, alert_message }
                    }
                    // As the hooks have it for a guest of this process.
                    Error::Connect(_) => Self::DestinationUnavailable,
                    Error::Tls(_) => Self::TlsProtocolError,
                    _ => Self::HttpProtocolError,
                }
            }
        }

        impl From<Fault> for Error {
            fn from(fault: Fault) -> Self {
                match fault {
                    $(Fault::$plain => Self::$plain,)*
                    $(Fault::$sized(size) => Self::$sized(size),)*
                    Fault::DnsError { rcode, info_code } => Self::DnsError { rcode, info_code },
                    Fault::TlsAlertReceived { alert_id, alert_message } => {
                        Self::TlsAlertReceived { alert_id, alert_message }
                    }
                }
            }
        }
    };
}

faults!(
    DnsTimeout, DestinationNotFound, DestinationUnavailable, DestinationIpProhibited, DestinationIpUnroutable,
    ConnectionRefused, ConnectionTerminated, ConnectionTimeout, ConnectionReadTimeout, ConnectionWriteTimeout,
    ConnectionLimitReached, TlsProtocolError, TlsCertificateError, HttpRequestDenied, HttpRequestLengthRequired,
    HttpRequestMethodInvalid, HttpRequestUriInvalid, HttpRequestUriTooLong, HttpResponseIncomplete,
    HttpResponseTimeout, HttpUpgradeFailed, HttpProtocolError, LoopDetected, ConfigurationError;
    HttpRequestBodySize(u64), HttpRequestHeaderSectionSize(u32), HttpRequestTrailerSectionSize(u32),
    HttpResponseHeaderSectionSize(u32), HttpResponseBodySize(u64), HttpResponseTrailerSectionSize(u32),
    HttpResponseTransferCoding(String), HttpResponseContentCoding(String), InternalError(String)
);
