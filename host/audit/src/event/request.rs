//! Records of requests that were refused before they were calls.

use serde::Serialize;

use super::Clipped;

/// Requests that were refused since the last such record: those of one caller, or of one range of
/// addresses, for one reason. Where there were too many kinds for records of their own, `others`
/// counts the rest.
#[derive(Debug, Clone, Serialize)]
pub struct RequestRefused<'a> {
    /// The reason: `no_credential`, `unknown_credential`, `missing_right`, `host`, `origin`,
    /// `hidden_tool`, `unknown_tool`.
    pub reason: &'a str,
    /// Who asked, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Clipped<'a>>,
    /// Where it came from: `203.0.113.0/24` or `2001:db8::/48`; `local` for a Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<&'a str>,
    /// The tool or prompt that the caller may not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    /// True if this counts requests that have no record of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
    /// The number of requests.
    pub count: u64,
    /// The time of the first of them.
    pub first: &'a str,
}
