//! Checks the headers of a modern request against its body (2026-07-28, "Server Validation"), and
//! reads the revision of a legacy one.

use http::{HeaderMap, HeaderName};

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

/// The spelling that a header may use.
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

/// The revision that the headers of a request name, if it is served.
pub(super) fn revision(headers: &HeaderMap) -> Option<Revision> {
    single(headers, &PROTOCOL_VERSION).ok().flatten()?.to_str().ok().and_then(Revision::named)
}

/// The era that the headers of a request name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// They name no version.
    Unsaid,
    /// A version that goes with a session.
    Legacy,
    /// A version that goes without.
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
