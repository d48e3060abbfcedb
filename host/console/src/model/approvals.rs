//! The view of calls that wait for a person.

use std::time::Duration;

use super::{CallLink, Moment, Reach};
use crate::json;

/// The view "Approvals".
#[derive(Debug, Clone, Default)]
pub struct Approvals {
    /// Calls that wait, oldest first; at most [`ROWS`](crate::bounds::ROWS) are shown.
    pub waiting: Vec<WaitingApproval>,
    /// Calls that waited, and how that ended, newest first.
    pub decided: Vec<DecidedApproval>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, Default)]
pub struct WaitingApproval {
    /// The name in forms and of its element: ASCII letters and digits, `-` and `_`.
    pub key: String,
    /// The host's number of the call.
    pub call: u64,
    /// The tool, as clients see it.
    pub tool: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The caller's name.
    pub caller: String,
    /// The question to the person: one sentence.
    pub question: String,
    /// The arguments, as JSON text.
    pub arguments: String,
    /// Bytes of the arguments that are missing there.
    pub arguments_left_out: u64,
    /// Things that the call may reach.
    pub reach: Vec<Reach>,
    /// The time since when it waits.
    pub since: Moment,
    /// The time that is left until it is declined by itself.
    pub left: Option<Duration>,
    /// How long an allowance would hold for further calls; none if it cannot be remembered.
    pub remember: Option<Duration>,
    /// The most calls of its run that an answer may allow; none if no tool makes the call.
    pub run_calls_max: Option<u32>,
}

impl WaitingApproval {
    /// True if a page shows all of its arguments. Else it can only be declined.
    #[must_use]
    pub fn is_shown_whole(&self) -> bool {
        self.arguments_left_out == 0 && json::is_shown_whole(&self.arguments)
    }
}

/// The end of a wait: a decision, or what came in its place.
#[derive(Debug, Clone, Default)]
pub struct DecidedApproval {
    /// Its time.
    pub at: Moment,
    /// The call.
    pub call: Option<CallLink>,
    /// The tool, as clients see it.
    pub tool: String,
    /// The caller's name.
    pub caller: String,
    /// The answer, as the audit names it: `accepted`, `declined`, `timed_out`, `cancelled`.
    pub answer: String,
    /// Who decided or ended it: `the console's session 1a2b3c4d`.
    pub by: String,
}
