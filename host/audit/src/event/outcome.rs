//! The outcome of a call and the resources it used.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It gave a result.
    Ok,
    /// It returned a result that is an error, or failed with an error of its own.
    ToolError,
    /// The arguments were refused, by the schema or by the tool.
    InvalidInput,
    /// The result was refused: not JSON, too deep, not as the output schema says.
    InvalidOutput,
    /// The guest trapped, exited or ran out of stack.
    Trap,
    /// The computing budget was used up.
    OutOfFuel,
    /// More memory was asked for than the call may have.
    OutOfMemory,
    /// Another limit ended the call: output, handles, host data.
    LimitExceeded,
    /// The wall clock ended the call.
    Deadline,
    /// The caller, or the end of the process, ended the call.
    Cancelled,
    /// No instance was free to run it.
    Busy,
    /// The caller exceeded the rate of the tool.
    RateLimited,
    /// It ended with questions for its caller, who calls again with the answers.
    InputRequired,
    /// No person confirmed it.
    NotApproved,
    /// A rule of the manifest on its arguments refused it.
    NotAllowed,
    /// The state that replicas share was unreachable.
    StateAway,
    /// It was repeated with its key, and got the first answer.
    Repeated,
    /// The sandbox process that ran it died.
    SandboxEnded,
    /// The host failed, not the guest.
    HostError,
}

/// The resources that a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Units of fuel.
    pub fuel: u64,
    /// The most that all memories and tables had together at one time, in bytes.
    pub memory_peak_bytes: u64,
    /// Wall clock; in records whole microseconds, as `duration_us`.
    #[serde(rename = "duration_us", serialize_with = "as_micros", deserialize_with = "of_micros")]
    pub duration: Duration,
    /// Standard output, standard error and log lines, in bytes.
    pub log_bytes: u64,
    /// The result, in bytes.
    pub output_bytes: u64,
    /// Bytes sent over the network: heads and bodies of HTTP requests.
    pub egress_bytes: u64,
    /// Bytes received over the network: heads and bodies of HTTP responses.
    pub ingress_bytes: u64,
    /// The number of times that a grant was missing; there may be fewer `call.denied` records,
    /// never more.
    pub denials: u64,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Ok,
        Self::ToolError,
        Self::InvalidInput,
        Self::InvalidOutput,
        Self::Trap,
        Self::OutOfFuel,
        Self::OutOfMemory,
        Self::LimitExceeded,
        Self::Deadline,
        Self::Cancelled,
        Self::Busy,
        Self::RateLimited,
        Self::InputRequired,
        Self::NotApproved,
        Self::NotAllowed,
        Self::StateAway,
        Self::Repeated,
        Self::SandboxEnded,
        Self::HostError,
    ];

    /// True if something went wrong, and the call gave no result for that reason. Calls that were
    /// cancelled, continue with an answer, or had their result before do not count.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::Cancelled | Self::InputRequired | Self::Repeated)
    }

    /// The name in records: `out_of_fuel`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::InvalidInput => "invalid_input",
            Self::InvalidOutput => "invalid_output",
            Self::Trap => "trap",
            Self::OutOfFuel => "out_of_fuel",
            Self::OutOfMemory => "out_of_memory",
            Self::LimitExceeded => "limit_exceeded",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
            Self::InputRequired => "input_required",
            Self::NotApproved => "not_approved",
            Self::NotAllowed => "not_allowed",
            Self::StateAway => "state_away",
            Self::Repeated => "repeated",
            Self::SandboxEnded => "sandbox_ended",
            Self::HostError => "host_error",
        }
    }
}

fn as_micros<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn of_micros<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_micros)
}
