//! The kinds of responses that a client accepts (RFC 9110 section 12.5.1), and the form of its
//! requests' bodies.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};

use super::refusal::HttpRefusal;

/// The two kinds of responses.
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

/// Checks that a body over HTTP/1.1 without a length comes in chunks and nothing else (RFC 9112
/// section 6.1). With any other list of codings, a proxy may see another end.
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
