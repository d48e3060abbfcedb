//! The view of audit records.

use std::time::Duration;

use super::Moment;

/// The view "Audit".
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// The search, as it was sent.
    pub query: AuditQuery,
    /// Outcomes to choose from.
    pub outcomes: Vec<String>,
    /// Calls that run, then records, newest first; at most [`ROWS`](crate::bounds::ROWS) are shown.
    pub rows: Vec<AuditRow>,
    /// The value of `before` in the address of the next page, with older records; none on the last.
    pub older: Option<String>,
    /// True if this is not the first page.
    pub is_older: bool,
    /// The state of the chain of hashes.
    pub chain: ChainState,
    /// The file; none where no audit is kept.
    pub file: Option<String>,
    /// One sentence where the search did not look at all records, or could not be understood.
    pub remark: Option<String>,
}

/// A search. Empty texts match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// The tool.
    pub tool: String,
    /// The caller.
    pub caller: String,
    /// The outcome: `trap`.
    pub outcome: String,
    /// The earliest time: a time or an age, such as `1h`.
    pub since: String,
    /// The latest time.
    pub until: String,
    /// A text anywhere in the record.
    pub text: String,
}

/// A record, or a call with all of its records.
#[derive(Debug, Clone, Default)]
pub struct AuditRow {
    /// Its time.
    pub at: Moment,
    /// Its type: `call.finished`.
    pub record: String,
    /// The call; none for records of no call.
    pub call: Option<CallLink>,
    /// The tool; may be empty.
    pub tool: String,
    /// The caller's name; may be empty.
    pub caller: String,
    /// The outcome; may be empty.
    pub outcome: String,
    /// The time that it took.
    pub took: Option<Duration>,
    /// Details in one line; may be empty.
    pub detail: String,
}

/// The name of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallLink {
    /// The name in the address of its page: one segment of a path.
    pub id: String,
    /// The host's number of the call.
    pub number: u64,
}

/// The state of the chain of hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChainState {
    /// It was not checked since the server started.
    #[default]
    Unknown,
    /// It is whole.
    Whole {
        /// Records that were checked.
        records: u64,
        /// The last hash.
        head: String,
        /// The time of the check.
        at: Moment,
    },
    /// It breaks.
    Broken {
        /// One sentence: where, and how.
        reason: String,
        /// The time of the check.
        at: Moment,
    },
}
