//! The report of a call, from the process that ran it to its caller.
use serde::{Deserialize, Serialize};
use toolcell_audit::Usage;
use toolcell_policy::{Denial, Limits};
use toolcell_schema::{PROBLEMS_BYTES_MAX, sanitize};

use crate::contract::{GuestPrompt, GuestResult, ListedResource};
use crate::failure::CallFailure;
use crate::weight::weigh;

/// Texts of this size take tens of microseconds to search.
const LONG_BYTES: u64 = 16 << 10;

/// Bytes that a log line counts in addition to its text. Even an empty line takes more than that in
/// the host's log and in a notification.
pub const LINE_BYTES: u64 = 32;

/// The guest's prints and log lines of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Standard output and standard error in the order written, up to the limit.
    pub text: String,
    /// Bytes printed or logged past the limit, and dropped.
    pub dropped_bytes: u64,
}

/// The outcome of a call. There is always a report, even where the guest fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallReport<T> {
    /// The answer, or the failure.
    pub outcome: Result<T, CallFailure>,
    /// The resources that it used.
    pub usage: Usage,
    /// The guest's prints.
    pub captured: Captured,
    /// The first denials of the call. Each side has its own: none crosses the wall in a report.
    #[serde(skip)]
    pub denials: Vec<Denial>,
    /// The problems of its structured result against the tool's output schema, a line each. Only
    /// set where a sandbox process applies the schemas.
    pub unfit: Option<String>,
    /// True if its instance was kept for its caller's next call.
    pub kept: bool,
}

/// The entries that a component lists in addition to its tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListedBeside {
    /// Its prompts.
    pub prompts: Vec<GuestPrompt>,
    /// Its resources and templates.
    pub resources: Vec<ListedResource>,
}

impl<T> CallReport<T> {
    /// Nothing ran.
    fn of(outcome: Result<T, CallFailure>) -> Self {
        Self {
            outcome,
            usage: Usage::default(),
            captured: Captured::default(),
            denials: Vec::new(),
            unfit: None,
            kept: false,
        }
    }

    /// A value that is known without running anything.
    #[must_use]
    pub fn without_running(value: T) -> Self {
        Self::of(Ok(value))
    }

    /// Nothing ran, for this reason.
    #[must_use]
    pub fn not_run(failure: CallFailure) -> Self {
        Self::of(Err(failure))
    }

    /// The report with an outcome derived from the answer.
    #[must_use]
    pub fn and_then<U>(self, then: impl FnOnce(T) -> Result<U, CallFailure>) -> CallReport<U> {
        let Self { outcome, usage, captured, denials, unfit, kept } = self;
        CallReport { outcome: outcome.and_then(then), usage, captured, denials, unfit, kept }
    }

    /// The report of a call with these limits, as the host accepts it from a process. Amounts
    /// beyond a limit are cut to it, or become the limit's failure. The host counts traffic itself.
    #[must_use]
    pub fn taken(mut self, limits: &Limits) -> Self {
        self.usage.fuel = self.usage.fuel.min(limits.fuel());
        self.usage.log_bytes = self.usage.log_bytes.min(limits.log_bytes());
        self.usage.egress_bytes = 0;
        self.usage.ingress_bytes = 0;
        let room = usize::try_from(limits.log_bytes()).unwrap_or(usize::MAX);
        // Invalid UTF-8 has become longer.
        clip(&mut self.captured.text, room.saturating_mul(3));
        self.outcome = self.outcome.map_err(|failure| failure.taken(limits));
        self.unfit = self.unfit.map(problems);
        self
    }

    /// The report, short enough for a message about a call that may not print anything.
    #[must_use]
    pub fn to_send(mut self) -> Self {
        self.outcome = self.outcome.map_err(CallFailure::to_send);
        self
    }
}

impl CallReport<GuestResult> {
    /// True if the texts of the report are long.
    #[must_use]
    pub fn is_long(&self) -> bool {
        let answer = self.outcome.as_ref().map_or(0, |result| weigh(result).0);
        answer.saturating_add(self.captured.text.len() as u64) > LONG_BYTES
    }
}

/// Problems of a value, which an honest process never changes: of bounded length, and without
/// misleading characters.
pub(crate) fn problems(mut text: String) -> String {
    clip(&mut text, PROBLEMS_BYTES_MAX);
    sanitize::text(&text).into_owned()
}

/// Cuts a text to this many bytes.
pub(crate) fn clip(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}
