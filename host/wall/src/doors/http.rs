//! A request and its response. The sandbox process sends a head and pieces of a body. A body of
//! unknown length has an end, or trailers. The host sends the response in the same parts, or an
//! error. The door may then carry the call's next request, which is another head.
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use serde::{Deserialize, Serialize};

use super::blob::Blob;
use super::http_fault::HttpFault;

/// Fields of one message: more than wasi:http lets a guest have under the largest limits.
pub(super) const FIELDS_MAX: usize = 20_000;

/// The head of a request, as the guest wrote it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestHead {
    method: String,
    scheme: String,
    authority: String,
    target: Option<String>,
    fields: HeaderFields,
    waits: RequestWaits,
    /// The whole body's length, if known. Its last byte is then its end.
    pub body_bytes: Option<u64>,
}

/// The times that the guest is ready to wait.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RequestWaits {
    /// For a connection.
    pub connect: Option<Duration>,
    /// For the response's head.
    pub first_byte: Option<Duration>,
    /// Between two pieces of its body.
    pub between_bytes: Option<Duration>,
}

/// The end of a guest's body. Before it come frames of data. A body of known length needs none,
/// unless it is abandoned.
#[derive(Debug, Serialize, Deserialize)]
pub enum BodyEnd {
    /// It is complete.
    Whole,
    /// It is complete, with these trailers.
    Trailers(HeaderFields),
    /// The guest abandoned it.
    Aborted,
}

/// A message of the host. After the head come frames of data.
#[derive(Debug, Serialize, Deserialize)]
pub enum HttpReply {
    /// The head of the response.
    Head(ResponseHead),
    /// The response is complete.
    Whole(DoorUse),
    /// The response is complete, with these trailers.
    Trailers(HeaderFields),
    /// The response failed, before its head or within its body.
    Failed(HttpFault),
}

/// The head of a response.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResponseHead {
    /// Its status code.
    pub status: u16,
    /// Its header fields.
    pub fields: HeaderFields,
    /// `None` if a body follows.
    pub whole: Option<DoorUse>,
}

/// What a door is good for after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DoorUse {
    /// The call's next request.
    Next,
    /// Nothing: the guest's body was not taken completely.
    Spent,
}

/// Header fields or trailers, in order.
#[derive(Debug, Serialize, Deserialize)]
pub struct HeaderFields(Vec<(Blob, Blob)>);

impl RequestHead {
    /// The head of this request.
    #[must_use]
    pub fn new<B>(request: &Request<B>, waits: RequestWaits, body_bytes: Option<u64>) -> Self {
        let uri = request.uri();
        Self {
            method: request.method().as_str().to_owned(),
            scheme: uri.scheme_str().unwrap_or_default().to_owned(),
            authority: uri.authority().map_or("", |authority| authority.as_str()).to_owned(),
            target: uri.path_and_query().map(|target| target.as_str().to_owned()),
            fields: HeaderFields::from(request.headers()),
            waits,
            body_bytes,
        }
    }

    /// The request with this body. `None` if wasi:http never makes this head: no server should have
    /// to deal with two lengths, or one that is not a number.
    pub fn into_request<B>(self, body: B) -> Option<(Request<B>, RequestWaits)> {
        let mut uri = Uri::builder().scheme(self.scheme.as_str()).authority(self.authority.as_str());
        if let Some(target) = self.target {
            uri = uri.path_and_query(PathAndQuery::try_from(target).ok()?);
        }
        let mut request = Request::new(body);
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).ok()?;
        *request.uri_mut() = uri.build().ok()?;
        *request.headers_mut() = self.fields.into_map()?;
        let mut lengths = request.headers().get_all(header::CONTENT_LENGTH).iter();
        let is_length = |value: &HeaderValue| {
            let digits = value.as_bytes();
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        let has_one_length = lengths.next().is_none_or(is_length) && lengths.next().is_none();
        has_one_length.then_some((request, self.waits))
    }
}

impl From<&HeaderMap> for HeaderFields {
    fn from(map: &HeaderMap) -> Self {
        let field = |(name, value): (&HeaderName, &HeaderValue)| {
            (Blob(name.as_str().as_bytes().to_vec()), Blob(value.as_bytes().to_vec()))
        };
        Self(map.iter().map(field).collect())
    }
}

impl HeaderFields {
    /// The fields; `None` if HTTP does not allow one.
    #[must_use]
    pub fn into_map(self) -> Option<HeaderMap> {
        let mut map = HeaderMap::new();
        for (Blob(name), Blob(value)) in self.0 {
            let name = HeaderName::from_bytes(&name).ok()?;
            map.try_append(name, HeaderValue::try_from(value).ok()?).ok()?;
        }
        Some(map)
    }
}

/// True if a field belongs to the connection, the proxy or the host: a guest can neither set nor
/// see it. These are the fields of RFC 9110, section 7.6.1, and those that could forge or smuggle a
/// request.
#[must_use]
pub fn is_forbidden(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 5] =
        [header::CONNECTION, header::HOST, header::TE, header::TRAILER, header::TRANSFER_ENCODING];
    NAMES.contains(name)
        || *name == header::UPGRADE
        || matches!(name.as_str(), "keep-alive" | "http2-settings")
        || name.as_str().starts_with("proxy-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_connection_or_the_host_is_forbidden_and_nothing_else() {
        let forbidden = [
            "connection",
            "host",
            "http2-settings",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "proxy-status",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        for name in forbidden {
            assert!(is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["authorization", "content-length", "cookie", "accept-encoding", "x-host", "expect", "via"] {
            assert!(!is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
    }
}
