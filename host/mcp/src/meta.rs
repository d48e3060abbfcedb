//! The `_meta` of a request: the protocol's own keys (2026-07-28, "General fields"), trace context,
//! the rest. The extensions that a client declares.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::asking::AskCapabilities;
use crate::frame::{Params, RequestId, RpcError, push_string, scan};
use crate::revision::Revision;

/// Keys with this prefix belong to the protocol.
pub(crate) const RESERVED_PREFIX: &str = "io.modelcontextprotocol/";
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const PROGRESS_TOKEN: &str = "progressToken";
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// Longest `tracestate` passed on, in bytes (W3C Trace Context section 3.3.1.5 asks for at least
/// 512).
const TRACESTATE_BYTES_MAX: usize = 512;

/// Longest `baggage` passed on, in bytes (W3C Baggage section 3.3.2).
const BAGGAGE_BYTES_MAX: usize = 8_192;

/// Longest name and version of a client that are kept, in bytes; longer ones are cut. 256: real
/// ones have at most about 60, and each session keeps its own.
const CLIENT_TEXT_BYTES_MAX: usize = 256;

/// Longest further keys of `_meta` with their values, in bytes. 64 KiB: each call keeps its own
/// while it runs, for minutes as a task. Real ones have at most some hundred bytes.
const REST_BYTES_MAX: usize = 64 * 1024;

/// Longest declaration that is kept, in bytes: dozens of extensions with their settings. A longer
/// one is ignored.
const EXTENSIONS_BYTES_MAX: usize = 4_096;

/// The levels of a log message (RFC 5424), least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientLogLevel {
    /// For developers.
    Debug,
    /// Progress of operations.
    Info,
    /// Normal but significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Act at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl ClientLogLevel {
    /// The least level of log messages for a legacy client that has not called `logging/setLevel`;
    /// the protocol leaves it to the server.
    pub(crate) const LEGACY: Self = Self::Info;

    /// Every level, least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of this name on the wire.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    pub(crate) fn parse(value: &str, field: &str) -> Result<Self, RpcError> {
        scan::string(value).and_then(|name| Self::named(&name)).ok_or_else(|| {
            RpcError::meta(format!(
                "{field} must be one of debug, info, notice, warning, error, critical, alert, emergency"
            ))
        })
    }
}

/// The name and version that a client claims. Unverified: for logs, never for decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// Its name, at most 256 bytes.
    pub name: String,
    /// Its version, at most 256 bytes.
    pub version: String,
}

impl ClientInfo {
    /// Reads an `Implementation` from its JSON text.
    pub(crate) fn parse(value: &str, field: &str) -> Result<Self, RpcError> {
        #[derive(serde::Deserialize)]
        struct Implementation<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow)]
            version: Cow<'a, str>,
        }
        let kept = |text: &str| cut(text, CLIENT_TEXT_BYTES_MAX).to_owned();
        serde_json::from_str::<Implementation<'_>>(value)
            .map(|info| Self { name: kept(&info.name), version: kept(&info.version) })
            .map_err(|_| RpcError::meta(format!("{field} must be an object with a name and a version")))
    }
}

/// The beginning of a text: at most this many bytes, in whole characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The caller's trace context (W3C), to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Always in the form of W3C Trace Context section 3.2.
    pub traceparent: String,
    /// At most 512 bytes; longer ones are left out.
    pub tracestate: Option<String>,
    /// At most 8,192 bytes; longer ones are left out.
    pub baggage: Option<String>,
}

/// The `_meta` of a request of any era.
#[derive(Debug)]
pub(crate) struct RequestMeta {
    pub(crate) progress_token: Option<RequestId>,
    pub(crate) trace: Option<TraceContext>,
    /// The other keys, as a JSON object. Longer ones are refused.
    pub(crate) rest: String,
}

impl RequestMeta {
    pub(crate) fn read(params: &Params<'_>) -> Result<Self, RpcError> {
        let progress_token = params
            .meta(PROGRESS_TOKEN)
            .map(|value| {
                let wrong = || RpcError::params(format!("progressToken {}", RequestId::requirement(value)));
                RequestId::parse(value).ok_or_else(wrong)
            })
            .transpose()?;
        Ok(Self { progress_token, trace: trace_of(params), rest: rest(params)? })
    }
}

/// The client of one request, as described by its session or its own `_meta`.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) revision: Revision,
    pub(crate) client: Option<Arc<ClientInfo>>,
    /// The lowest level of log messages that it wants; `None`: it wants none.
    pub(crate) log_level: Option<ClientLogLevel>,
    pub(crate) capabilities: AskCapabilities,
    /// The extensions that it declares, as a JSON object.
    pub(crate) extensions: Option<Arc<str>>,
}

impl Peer {
    /// Reads the client of a modern request.
    pub(crate) fn of_meta(params: &Params<'_>, revision: Revision) -> Result<Self, RpcError> {
        let capabilities = match params.meta(CLIENT_CAPABILITIES) {
            None => return Err(missing(&[CLIENT_CAPABILITIES])),
            Some(value) if !scan::is_object(value) => {
                return Err(RpcError::meta(format!("{CLIENT_CAPABILITIES} must be an object")));
            }
            Some("{}") => AskCapabilities::default(),
            Some(value) => AskCapabilities::read(value, revision),
        };
        let extensions = params.meta(CLIENT_CAPABILITIES).and_then(declared_extensions);
        let client = params.meta(CLIENT_INFO).map(|value| ClientInfo::parse(value, CLIENT_INFO)).transpose()?;
        let log_level = params.meta(LOG_LEVEL).map(|value| ClientLogLevel::parse(value, LOG_LEVEL)).transpose()?;
        Ok(Self { revision, client: client.map(Arc::new), log_level, capabilities, extensions })
    }
}

#[derive(serde::Deserialize)]
struct DeclaredExtensions<'a> {
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

/// The extensions that these `ClientCapabilities` declare, as a JSON object; `None` without any.
pub(crate) fn declared_extensions(capabilities: &str) -> Option<Arc<str>> {
    if !capabilities.contains("extensions") {
        return None;
    }
    let declared: DeclaredExtensions<'_> = serde_json::from_str(capabilities).ok()?;
    let text = declared.extensions?.get();
    (text.len() <= EXTENSIONS_BYTES_MAX && scan::is_object(text) && text != "{}").then(|| text.into())
}

/// The error for a request without required keys of `_meta`.
pub(crate) fn missing(keys: &[&str]) -> RpcError {
    RpcError::meta(format!("Missing in params._meta: {}", keys.join(", ")))
}

/// The trace context in the request's own `_meta`.
pub(crate) fn trace_of(params: &Params<'_>) -> Option<TraceContext> {
    TraceContext::of(|key| scan::string(params.meta(key)?))
}

impl TraceContext {
    /// Reads the headers of a request (W3C Trace Context section 3.2), if its `_meta` has no trace
    /// context.
    pub(crate) fn of_headers(headers: &http::HeaderMap) -> Option<Self> {
        // A header that came twice counts as missing (section 3.2.1, and RFC 9110 section 5.2 for
        // the others).
        let single = |key: &str| {
            let mut values = headers.get_all(key).iter();
            values.next().filter(|_| values.next().is_none())?.to_str().ok().map(Cow::Borrowed)
        };
        Self::of(single)
    }

    /// Reads the well-formed values of these keys.
    fn of<'v>(value: impl Fn(&str) -> Option<Cow<'v, str>>) -> Option<Self> {
        let text = |key: &str, bytes_max: usize| {
            let value = value(key)?;
            let printable = value.bytes().all(|byte| (0x20..0x7F).contains(&byte));
            (value.len() <= bytes_max && printable).then(|| value.into_owned())
        };
        let traceparent = text(TRACEPARENT, TRACESTATE_BYTES_MAX).filter(|value| is_traceparent(value))?;
        let tracestate = text(TRACESTATE, TRACESTATE_BYTES_MAX);
        let baggage = text(BAGGAGE, BAGGAGE_BYTES_MAX);
        Some(Self { traceparent, tracestate, baggage })
    }
}

/// True for `version-traceid-parentid-flags` in lower-case hex, neither id all zeroes (W3C Trace
/// Context 3.2.2).
fn is_traceparent(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let set = |part: &str| part.bytes().any(|byte| byte != b'0');
    match parts.as_slice() {
        [version, trace, parent, flags] => {
            hex(version, 2)
                && *version != "ff"
                && hex(trace, 32)
                && hex(parent, 16)
                && hex(flags, 2)
                && set(trace)
                && set(parent)
        }
        _ => false,
    }
}

fn rest(params: &Params<'_>) -> Result<String, RpcError> {
    let mut out = vec![b'{'];
    for (key, value) in params.metas().filter(|(key, _)| !key.starts_with(RESERVED_PREFIX) && *key != PROGRESS_TOKEN) {
        if out.len() > 1 {
            out.push(b',');
        }
        push_string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
        if out.len() > REST_BYTES_MAX {
            let text = format!("params._meta has more than {REST_BYTES_MAX} bytes besides the protocol's own keys");
            return Err(RpcError::params(text));
        }
    }
    out.push(b'}');
    Ok(String::from_utf8(out).unwrap_or_else(|_| "{}".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_keeps_the_beginning_of_its_name_and_version_however_long_they_are() {
        for letter in ["x", "é", "\\n", "\\u00e9"] {
            let long = letter.repeat(1_000_000);
            let text = format!(r#"{{"name":"{long}","title":"{long}","version":"{long}"}}"#);
            let client = ClientInfo::parse(&text, "clientInfo").unwrap();
            for kept in [client.name, client.version] {
                assert_eq!((kept.len(), kept.capacity()), (CLIENT_TEXT_BYTES_MAX, CLIENT_TEXT_BYTES_MAX), "{letter}");
            }
        }
        let short = ClientInfo::parse(r#"{"name":"a\"b","version":""}"#, "clientInfo").unwrap();
        assert_eq!((&*short.name, &*short.version), ("a\"b", ""));
    }

    #[test]
    fn an_object_of_bounded_length_is_kept_as_it_is() {
        let long = format!(r#"{{"extensions":{{"a":"{}"}}}}"#, "x".repeat(EXTENSIONS_BYTES_MAX));
        for (capabilities, kept) in [
            ("{}", None),
            (r#"{"extensions":{}}"#, None),
            (r#"{"extensions":7}"#, None),
            (r#"{"extensions":null}"#, None),
            (r#"{"sampling":{"extensions":{"a":{}}}}"#, None),
            (r#"{"roots":{},"extensions":{"a/b":{"c":[1]}}}"#, Some(r#"{"a/b":{"c":[1]}}"#)),
            (&long, None),
        ] {
            assert_eq!(declared_extensions(capabilities).as_deref(), kept, "{capabilities}");
        }
    }
}
