//! Records of alerts.

use serde::Serialize;

use super::Clipped;

/// Something failed or was denied so often that an operator should look into it.
#[derive(Debug, Clone, Serialize)]
pub struct AlertRaised<'a> {
    /// The rule: `tool_failures`, `tool_denials`, `caller_failures`, `caller_denials`, `refusals`,
    /// `secret_failures`.
    pub rule: &'a str,
    /// The tool, the caller, the range of addresses or the program.
    pub subject: Clipped<'a>,
    /// The number within the window.
    pub count: u64,
    /// The window, in seconds.
    pub window_seconds: u64,
}
