//! The headers of a request: the framing and media type of its body, the responses that the client
//! accepts (RFC 9110 section 12.5.1), and the era. Those of a modern request are checked against
//! its body (2026-07-28, "Server Validation").

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::HttpRefusal;
use crate::frame::{McpRequest, RpcError, scan};
use crate::mirrored::{Mismatch, decoded, single};
use crate::revision::Revision;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header that names a legacy session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Checks the standard headers of a request whose body names this version (a JSON text).
pub(super) fn check_modern(headers: &HeaderMap, request: &McpRequest<'_>, version: &str) -> Result<(), RpcError> {
    check_version(headers, version)?;
    same(headers, &METHOD, request.method.name(), Coding::Plain).map_err(|mismatch| mismatch.error("Mcp-Method"))?;
    let named = request.method.named_by().and_then(|param| request.params.get(param)).and_then(scan::string);
    let Some(named) = named else { return Ok(()) };
    same(headers, &NAME, &named, Coding::Sentinel).map_err(|mismatch| mismatch.error("Mcp-Name"))
}

/// Checks the version alone, for notifications: they have no other standard header.
pub(super) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
    // The reader of `_meta` refuses a version that is not a string.
    let Some(version) = scan::string(version) else { return Ok(()) };
    same(headers, &PROTOCOL_VERSION, &version, Coding::Plain).map_err(|mismatch| mismatch.error("MCP-Protocol-Version"))
}

/// How a header may be encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    Plain,
    Sentinel,
}

fn same(headers: &HeaderMap, name: &HeaderName, said: &str, coding: Coding) -> Result<(), Mismatch> {
    let value = single(headers, name)?.ok_or(Mismatch::Missing)?;
    let same = match coding {
        Coding::Plain => value.to_str().map_err(|_| Mismatch::Unreadable)? == said,
        Coding::Sentinel => decoded(value).ok_or(Mismatch::Unreadable)? == said,
    };
    if same { Ok(()) } else { Err(Mismatch::Different) }
}

/// The revision in the headers of a request, if it is served.
pub(super) fn revision(headers: &HeaderMap) -> Option<Revision> {
    single(headers, &PROTOCOL_VERSION).ok().flatten()?.to_str().ok().and_then(Revision::named)
}

/// The era according to the headers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// They have no version.
    Unsaid,
    /// A version with sessions.
    Legacy,
    /// A version without sessions.
    Modern,
    /// An unknown version, or several.
    Unknown,
}

impl Era {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match single(headers, &PROTOCOL_VERSION) {
            Err(_) => Self::Unknown,
            Ok(None) => Self::Unsaid,
            Ok(Some(value)) => match value.to_str().ok().and_then(Revision::named) {
                None => Self::Unknown,
                Some(revision) if revision.is_modern() => Self::Modern,
                Some(_) => Self::Legacy,
            },
        }
    }
}

/// Which kinds of responses the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepted {
    /// The kinds that the client accepts; both if it does not say.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(ACCEPT).iter().peekable();
        if named.peek().is_none() {
            return Self { json: true, events: true };
        }
        let mut accepted = Self { json: false, events: false };
        for range in named.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')) {
            accepted.add(range);
        }
        accepted
    }

    fn add(&mut self, range: &str) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let refused = parts.filter_map(|part| part.split_once('=')).any(|(key, value)| {
            key.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
        });
        if refused {
            return;
        }
        let is = |name: &str| kind.eq_ignore_ascii_case(name);
        self.json |= is("*/*") || is("application/*") || is("application/json");
        self.events |= is("*/*") || is("text/*") || is("text/event-stream");
    }
}

/// Checks that the body of a request is uncompressed JSON.
///
/// A web page can make a browser send other types across origins without a preflight.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kinds.next().is_some() || !kind.eq_ignore_ascii_case("application/json") {
        return Err(HttpRefusal::MediaType);
    }
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(plain) { Ok(()) } else { Err(HttpRefusal::Encoding) }
}

/// Checks that an HTTP/1.1 body without a length is only chunked (RFC 9112 section 6.1). With other
/// codings, a proxy may see a different end.
pub(super) fn check_framing(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_none_or(chunked) && codings.next().is_none() { Ok(()) } else { Err(HttpRefusal::Framing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_takes_is_read_from_its_header() {
        for (header, json, events) in [
            (None, true, true),
            (Some("application/json, text/event-stream"), true, true),
            (Some("text/event-stream,application/json;charset=utf-8"), true, true),
            (Some("*/*"), true, true),
            (Some("application/json"), true, false),
            (Some("Application/JSON; q=0.5"), true, false),
            (Some("text/event-stream"), false, true),
            (Some("text/*;q=0.1"), false, true),
            (Some("application/json;q=0, text/event-stream"), false, true),
            (Some("text/html"), false, false),
            (Some(""), false, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(ACCEPT, header.parse().unwrap());
            }
            assert_eq!(Accepted::of(&headers), Accepted { json, events }, "{header:?}");
        }
    }

    #[test]
    fn only_json_as_it_stands_is_taken() {
        for (kind, encoding, taken) in [
            (Some("application/json"), None, true),
            (Some("application/json; charset=utf-8"), Some("identity"), true),
            (None, None, false),
            (Some("text/plain"), None, false),
            (Some("application/x-www-form-urlencoded"), None, false),
            (Some("application/jsonx"), None, false),
            (Some("application/json"), Some("gzip"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            }
            if let Some(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
            }
            assert_eq!(check_content(&headers).is_ok(), taken, "{kind:?} {encoding:?}");
        }
    }
    #[test]
    fn only_chunks_alone_say_where_a_body_ends() {
        for (codings, taken) in [
            (&[][..], true),
            (&["chunked"], true),
            (&["Chunked"], true),
            (&["chunked", "chunked"], false),
            (&["chunked, chunked"], false),
            (&["gzip, chunked"], false),
            (&["identity"], false),
            (&[""], false),
        ] {
            let mut headers = HeaderMap::new();
            for coding in codings {
                headers.append(TRANSFER_ENCODING, coding.parse().unwrap());
            }
            assert_eq!(check_framing(&headers).is_ok(), taken, "{codings:?}");
        }
    }
}
