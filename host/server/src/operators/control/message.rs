//! Requests over the control socket, with their JSON form.
use serde::{Deserialize, Serialize};

use super::activity::DecisionRequest;
use crate::lock::Approval;
use crate::observing::log::LogLevel;

/// Version of the protocol. A process of another version answers with an error.
pub const VERSION: u32 = 1;

/// Most bytes of a request's line: a long name fits.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024;

/// Longest answer, in bytes: the status of a thousand components with a thousand problems is
/// shorter.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A request's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// [`VERSION`].
    pub toolcell: u32,
    /// The request.
    pub request: Request,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Return the status.
    Status,
    /// Reload the manifest and its components now, and answer once that is done.
    Reload,
    /// Pin a quarantined component, and serve it.
    Approve(Approval),
    /// Return a link into the console, which works once.
    Console,
    /// Return running calls, denials, and calls that wait for a person.
    Activity,
    /// Carry out an operator's decision about them.
    Decide(DecisionRequest),
    /// Return the log level, after setting it if one is given.
    LogLevel(Option<LogLevel>),
}
