//! The host names that a server answers to, and the web pages that may call it. After DNS
//! rebinding, a page's requests have its own name as the host. Requests from a page of another
//! origin carry that origin.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::refusal::HttpRefusal;
use super::response::{ResponseContent, empty};
use crate::mirrored::single;

/// Headers that a web page may send.
const PAGE_SENDS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
                          mcp-protocol-version, mcp-session-id";

/// Headers that a web page may read.
const PAGE_READS: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");

/// The prefix of headers that repeat a tool's parameters.
const PARAMETER: &str = "mcp-param-";

/// Seconds for which a browser may cache the answer.
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("600");

/// The name that stands for this machine.
const LOOPBACK_NAME: &str = "localhost";

/// The origin policy: hosts and origins that are allowed besides the built-in ones. Over loopback
/// the server answers to `localhost` and loopback addresses. Elsewhere it answers to the address
/// that received the request. Its own pages may always call it.
#[derive(Clone, Debug, Default)]
pub struct OriginPolicy {
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
}

/// A host, with a port if only that one is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedHost {
    host: String,
    port: Option<u16>,
}

/// A text is not a host or an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The text is not `name`, `name:port` or an address like that.
    #[error("{0:?} is not a host: write \"tools.example.com\" or \"tools.example.com:8443\"")]
    Host(String),
    /// The text is not `scheme://host` or `scheme://host:port`.
    #[error("{0:?} is not an origin: write \"https://app.example.com\", without a path")]
    Origin(String),
}

impl OriginPolicy {
    /// Allows requests for this host: a name or an address, with a port to allow only that one.
    ///
    /// # Errors
    /// The text is not a host.
    pub fn host(mut self, text: &str) -> Result<Self, OriginError> {
        self.hosts.push(AllowedHost::parse(text).ok_or_else(|| OriginError::Host(text.to_owned()))?);
        Ok(self)
    }

    /// Allows web pages of this origin to call the server and read its answers.
    ///
    /// # Errors
    /// The text is not an origin.
    pub fn origin(mut self, text: &str) -> Result<Self, OriginError> {
        let wrong = || OriginError::Origin(text.to_owned());
        let (scheme, host) = text.split_once("://").ok_or_else(wrong)?;
        let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        if scheme.is_empty() || !plain || AllowedHost::parse(host).is_none() {
            return Err(wrong());
        }
        self.origins.push(text.to_ascii_lowercase());
        Ok(self)
    }

    /// Checks the host and the origin of a request. `local` is the address that received it; `None`
    /// for a Unix socket.
    pub(super) fn check(&self, parts: &Parts, local: Option<IpAddr>) -> Result<(), HttpRefusal> {
        let host = asked_host(parts)?;
        if !self.goes_by(&host, local) {
            return Err(HttpRefusal::Host);
        }
        let Some(origin) = origin_of(&parts.headers)? else { return Ok(()) };
        if self.is_listed(origin) || is_own(origin, &host) { Ok(()) } else { Err(HttpRefusal::Origin) }
    }

    /// True if the host and the origin of a request are allowed, for other listeners of the same
    /// process. `local` is the address that received it; `None` for a Unix socket.
    #[must_use]
    pub fn allows(&self, parts: &Parts, local: Option<IpAddr>) -> bool {
        self.check(parts, local).is_ok()
    }

    fn goes_by(&self, asked: &AllowedHost, local: Option<IpAddr>) -> bool {
        let listed = self
            .hosts
            .iter()
            .any(|named| named.host == asked.host && named.port.is_none_or(|port| asked.port == Some(port)));
        let loopback = local.is_none_or(|local| local.to_canonical().is_loopback());
        let address = asked.host.parse::<IpAddr>().ok();
        let itself = match address {
            Some(address) if loopback => address.is_loopback(),
            Some(address) => local.is_some_and(|local| local.to_canonical() == address.to_canonical()),
            None => loopback && asked.host == LOOPBACK_NAME,
        };
        listed || itself
    }

    fn is_listed(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin))
    }

    /// Lets an allowed page read the response.
    pub(super) fn expose(&self, origin: Option<HeaderValue>, response: &mut Response<ResponseContent>) {
        if self.origins.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_name(ORIGIN));
        let Some(origin) = origin.filter(|origin| origin.to_str().is_ok_and(|origin| self.is_listed(origin))) else {
            return;
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, PAGE_READS);
    }

    /// The answer to OPTIONS, which includes a browser's preflight, if these methods are allowed.
    pub(super) fn preflight(headers: &HeaderMap, methods: &'static str) -> Response<ResponseContent> {
        let mut sends = PAGE_SENDS.to_owned();
        let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
        for name in asked.unwrap_or_default().split(',').map(str::trim) {
            if name.get(..PARAMETER.len()).is_some_and(|start| start.eq_ignore_ascii_case(PARAMETER)) {
                sends.push_str(", ");
                sends.push_str(name);
            }
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        let told = response.headers_mut();
        told.insert(ALLOW, HeaderValue::from_static(methods));
        told.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
        told.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS);
        if let Ok(sends) = HeaderValue::from_str(&sends) {
            told.insert(ACCESS_CONTROL_ALLOW_HEADERS, sends);
        }
        response
    }
}

impl AllowedHost {
    fn parse(text: &str) -> Option<Self> {
        let authority = Authority::from_str(text).ok()?;
        let plain = !text.contains('@') && !authority.host().is_empty();
        let port = authority.port_u16();
        let has_port = authority.as_str().strip_prefix(authority.host()).is_some_and(|rest| !rest.is_empty());
        if !plain || has_port != port.is_some() {
            return None;
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Some(Self { host: host.to_ascii_lowercase(), port })
    }
}

/// The host that a request names: in its target, in `Host`, or equally in both.
fn asked_host(parts: &Parts) -> Result<AllowedHost, HttpRefusal> {
    let parse = |text: &str| AllowedHost::parse(text).ok_or(HttpRefusal::NoHost);
    let header = single(&parts.headers, &HOST).map_err(|_| HttpRefusal::NoHost)?;
    let header = header.map(|value| parse(value.to_str().unwrap_or_default())).transpose()?;
    let target = parts.uri.authority().map(|target| parse(target.as_str())).transpose()?;
    match (target, header) {
        (Some(target), Some(header)) if target != header => Err(HttpRefusal::NoHost),
        (Some(named), _) | (None, Some(named)) => Ok(named),
        (None, None) => Err(HttpRefusal::NoHost),
    }
}

/// The origin that a request names, if any.
fn origin_of(headers: &HeaderMap) -> Result<Option<&str>, HttpRefusal> {
    let origin = single(headers, &ORIGIN).map_err(|_| HttpRefusal::Origin)?;
    origin.map(|value| value.to_str().map_err(|_| HttpRefusal::Origin)).transpose()
}

/// True if an origin is the server itself, given the allowed host of the request.
fn is_own(origin: &str, host: &AllowedHost) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.and_then(AllowedHost::parse).is_some_and(|own| own == *host)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::frame::ErrorId;

    fn check(origin_policy: &OriginPolicy, local: &str, host: &str, origin: Option<&str>) -> Result<(), StatusCode> {
        let mut request = Request::post("/mcp").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let local = (local != "unix").then(|| local.parse().unwrap());
        origin_policy.check(&parts, local).map_err(|refusal| refusal.response(ErrorId::Absent).status())
    }

    #[test]
    fn a_server_goes_by_its_own_address_and_by_the_names_it_was_given() {
        let ok = Ok(());
        let bad = Err(StatusCode::BAD_REQUEST);
        let wrong = Err(StatusCode::FORBIDDEN);
        let plain = OriginPolicy::default();
        let named = OriginPolicy::default().host("tools.example.com").unwrap().host("10.0.0.9:8443").unwrap();
        for (origin_policy, local, host, expected) in [
            (&plain, "127.0.0.1", "127.0.0.1:8080", ok),
            (&plain, "127.0.0.1", "localhost:8080", ok),
            (&plain, "127.0.0.1", "LOCALHOST", ok),
            (&plain, "127.0.0.1", "[::1]:1", ok),
            (&plain, "::1", "localhost", ok),
            (&plain, "::ffff:127.0.0.1", "localhost", ok),
            (&plain, "127.0.0.1", "evil.example.com", wrong),
            (&plain, "127.0.0.1", "localhost.evil.example.com", wrong),
            (&plain, "127.0.0.1", "localhost.", wrong),
            (&plain, "127.0.0.1", "127.0.0.1.evil.example.com", wrong),
            (&plain, "127.0.0.1", "10.0.0.1", wrong),
            (&plain, "127.0.0.1", "0.0.0.0", wrong),
            (&plain, "127.0.0.1", "user@localhost", bad),
            (&plain, "127.0.0.1", "", bad),
            (&plain, "127.0.0.1", "localhost:port", bad),
            (&plain, "127.0.0.1", "localhost:99999", bad),
            (&plain, "10.0.0.5", "10.0.0.5:80", ok),
            (&plain, "10.0.0.5", "10.0.0.6:80", wrong),
            (&plain, "10.0.0.5", "localhost", wrong),
            (&plain, "10.0.0.5", "127.0.0.1", wrong),
            (&plain, "unix", "localhost", ok),
            (&plain, "unix", "tools.example.com", wrong),
            (&named, "10.0.0.5", "tools.example.com", ok),
            (&named, "10.0.0.5", "Tools.Example.Com:444", ok),
            (&named, "10.0.0.5", "10.0.0.9:8443", ok),
            (&named, "10.0.0.5", "10.0.0.9:8444", wrong),
            (&named, "10.0.0.5", "a.tools.example.com", wrong),
        ] {
            assert_eq!(check(origin_policy, local, host, None), expected, "{host} at {local}");
        }
    }

    #[test]
    fn only_pages_of_the_server_itself_and_of_listed_origins_may_ask() {
        let ok = Ok(());
        let wrong = Err(StatusCode::FORBIDDEN);
        let plain = OriginPolicy::default();
        let listed = OriginPolicy::default().origin("https://app.example.com").unwrap();
        for (origin_policy, origin, expected) in [
            (&plain, "http://localhost:8080", ok),
            (&plain, "https://localhost:8080", ok),
            (&plain, "http://localhost:8081", wrong),
            (&plain, "http://127.0.0.1:8080", wrong),
            (&plain, "https://app.example.com", wrong),
            (&plain, "null", wrong),
            (&plain, "", wrong),
            (&plain, "file://", wrong),
            (&listed, "https://app.example.com", ok),
            (&listed, "HTTPS://App.example.com", ok),
            (&listed, "http://app.example.com", wrong),
            (&listed, "https://app.example.com:444", wrong),
            (&listed, "https://app.example.com.evil.com", wrong),
        ] {
            assert_eq!(check(origin_policy, "127.0.0.1", "localhost:8080", Some(origin)), expected, "{origin}");
        }
    }

    #[test]
    fn what_is_no_host_and_no_origin_is_not_listed() {
        for host in ["", "a b", "http://a", "a/b", "user@a", "a:b", "a:"] {
            assert_eq!(OriginPolicy::default().host(host).err(), Some(OriginError::Host(host.to_owned())));
        }
        for origin in ["", "*", "null", "a.example.com", "https://", "https://a/", "https://a/b", "://a", "https://u@a"]
        {
            assert_eq!(
                OriginPolicy::default().origin(origin).err(),
                Some(OriginError::Origin(origin.to_owned())),
                "{origin}"
            );
        }
    }
}
