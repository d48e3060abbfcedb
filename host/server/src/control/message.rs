//! What is asked over the control socket, and in which form.
use serde::{Deserialize, Serialize};

use crate::lock::Approval;
use crate::log::LogLevel;

/// The version of the protocol. A process of another version says so instead of guessing.
pub const VERSION: u32 = 1;

/// Bytes of a request's line: a name with room to spare.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024;

/// Bytes of an answer's line: a status of a thousand components with a thousand problems stays below.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// One line that is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// [`VERSION`].
    pub toolcell: u32,
    /// What is asked.
    pub request: Request,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How it is.
    Status,
    /// Look at the manifest and its components now; answered once that is done.
    Reload,
    /// Pin what is quarantined, and serve it.
    Approve(Approval),
    /// Say how much is written to the log, and write so much from now on where it is named.
    LogLevel(Option<LogLevel>),
}
