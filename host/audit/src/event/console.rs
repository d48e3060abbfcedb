//! Records of the console.

use serde::Serialize;

use super::Clipped;

/// An operator sent a decision, which is carried out once this is recorded. If the audit is
/// required and cannot be written, the decision is refused.
#[derive(Debug, Clone, Serialize)]
pub struct ConsoleDeciding<'a> {
    /// Who decides, as in [`ConsoleDecided`].
    pub session: &'a str,
    /// The operator, as in [`ConsoleDecided`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Clipped<'a>>,
    /// The decision, as in [`ConsoleDecided`].
    pub decision: &'a str,
    /// The subject, as sent.
    pub subject: Clipped<'a>,
}

/// An operator decided something in the console or on a terminal, or entered the console.
#[derive(Debug, Clone, Serialize)]
pub struct ConsoleDecided<'a> {
    /// Who decided. In the console the session: the prefix of its digest, which lets nobody in.
    /// On a terminal `terminal of uid 1000`, as the kernel names the user.
    pub session: &'a str,
    /// The operator's name as a caller; `None` in a session that began with a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Clipped<'a>>,
    /// The decision: `enter`, `leave`, `stop`, `grant`, `mute`, `unmute`, `read`, `hold`,
    /// `approve`, `allow`, `remember`, `decline`, `try`, `token`, `revoke`, `record`,
    /// `end recording`; and `recording ended`, which comes by itself after `record`.
    pub decision: &'a str,
    /// The subject: a call's number, a rule, a component with its digest.
    pub subject: Clipped<'a>,
    /// True if it was done.
    pub done: bool,
    /// The outcome, or the reason why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Clipped<'a>>,
}
