//! Records of callers' logins.

use serde::Serialize;

use super::Clipped;

/// A caller logged in, failed to, or lost the login. No record has a token.
#[derive(Debug, Clone, Serialize)]
pub struct LoginChanged<'a> {
    /// The login's name in the manifest.
    pub login: &'a str,
    /// Whose it is.
    pub caller: Clipped<'a>,
    /// `made`, `failed` or `revoked`.
    pub change: &'a str,
    /// Who did it: `caller`, `operator`, or `server` where the caller's right has ended.
    pub by: &'a str,
    /// The component for which the caller logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<&'a str>,
    /// Why it failed, or what went wrong besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Clipped<'a>>,
}
