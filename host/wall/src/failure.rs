//! Why a call has no result: one variant per cause, with a text for the model and one for the
//! operator.
use serde::{Deserialize, Serialize};
use toolcell_audit::Outcome;
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Limit, Limits};

use crate::encoding::TAKEN_BYTES;
use crate::report::{clip, problems};
use crate::tape::{self, TapeEntry};

/// Bytes of a reason or a backtrace that an honest process sends. Both fit into a message even if a
/// call may neither answer nor print anything.
const REASON_BYTES_MAX: usize = 16 << 10;

/// Bytes of a reason or a backtrace that the host accepts from a sandbox process.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Why a call has no result.
///
/// `Display` is the external text: one clear sentence for the model, without host paths, addresses
/// or backtraces. [`CallFailure::detail`] is for the operator's log.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum CallFailure {
    /// The tool reports that the arguments are wrong.
    #[error("{0}")]
    InvalidInput(String),
    /// The arguments do not fit the tool's input schema. Nothing of the call ran.
    #[error("the arguments do not fit the tool's input schema:\n{problems}")]
    Unfit {
        /// Each failing place with the rule it breaks, a line each.
        problems: String,
    },
    /// The tool reports that its work failed.
    #[error("{0}")]
    Failed(String),
    /// A limit of the manifest ended the call.
    #[error("{} (limit \"{}\")", over(*.limit, .value), .limit.spec().key)]
    OverLimit {
        /// The limit.
        #[serde(with = "by_key")]
        limit: Limit,
        /// The value, as in a manifest.
        value: String,
    },
    /// The WebAssembly stack overflowed.
    #[error("stack overflow: the tool recursed too deep")]
    StackOverflow,
    /// Too many core instances, memories or tables.
    #[error("too many parts: the tool is made of more instances, memories or tables than one call may have")]
    Parts,
    /// The guest trapped.
    #[error("the tool trapped: {reason}")]
    Trapped {
        /// wasmtime's name for the trap.
        reason: String,
        /// The WebAssembly backtrace.
        detail: String,
    },
    /// The guest ended itself.
    #[error("the tool exited with status {status} instead of answering")]
    Exited {
        /// 0 for success, as the guest passed it.
        status: i32,
    },
    /// The caller gave up.
    #[error("the call was cancelled")]
    Cancelled,
    /// The guest asked a question, and the call continues when its caller comes back with the
    /// answers. If it cannot continue, the protocol has the reason for the caller.
    #[error("{}", .refused.as_deref().unwrap_or("the call goes on once there are answers"))]
    Asked {
        /// Why it cannot continue.
        refused: Option<String>,
    },
    /// No room in the instance pool in time.
    #[error("busy: the host is running as many calls as it can; try again")]
    Busy,
    /// The sandbox process that ran the call is gone, and the call with it.
    #[error("the sandbox was ended: {reason}")]
    SandboxEnded {
        /// Why, in one sentence without a full stop.
        reason: String,
    },
    /// The sandbox process that was to run the call ended before it could, and so did its
    /// replacements. No component had run in them.
    #[error("the sandbox was ended: its process ended while it started; try again")]
    SandboxNotStarted {
        /// The end of the last one, for the operator.
        detail: String,
    },
    /// The host failed, not the guest.
    #[error("the host could not run the tool; its log says why")]
    Host {
        /// The cause, for the operator.
        detail: String,
    },
    /// The call is a replay, and its recording ended it.
    #[error("{0}")]
    Replayed(ReplayEnd),
}

/// Why a recording ended the replay of its call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ReplayEnd {
    /// The guest asked for something that the recording does not have at this place.
    #[error("{}", differs(.asked.as_deref(), .expected.as_deref()))]
    Differs {
        /// The entry that it asked for, as JSON; `None` if it asked for nothing more.
        asked: Option<String>,
        /// The entry that the recording has; `None` if it is over, or if no order is expected.
        expected: Option<String>,
    },
    /// The guest of another component asked for what the recording does not have.
    #[error("the component asked for what the recording does not have: {}", questions(.0))]
    Asks(Vec<ReplayQuestion>),
    /// The host ended the recorded call here.
    #[error("the host ended the recorded call here: {reason}")]
    Ended {
        /// Why.
        reason: String,
    },
}

/// Questions of one replay that its recording does not answer. After the last one the call ends.
pub const QUESTIONS_MAX: usize = 10;

/// Bytes of a question's function, and of its name: ten questions fit into a message.
const QUESTION_BYTES_MAX: usize = 1 << 10;
const QUESTION_NAME_BYTES_MAX: usize = 512;

/// Something that a recording does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayQuestion {
    /// What was asked for, in plain words: `POST https://new.example/`. `None` of a function that
    /// reaches nothing outside.
    pub name: Option<String>,
    /// True if the recorded call asked for nothing of this name.
    pub is_new: bool,
    /// The function with its arguments, as JSON. It may be cut off.
    pub asked: String,
}

impl ReplayQuestion {
    /// A question, cut to what a message has room for.
    #[must_use]
    pub fn new(mut name: Option<String>, is_new: bool, asked: &TapeEntry) -> Self {
        let mut asked = json_line(asked);
        clip(&mut asked, QUESTION_BYTES_MAX);
        if let Some(name) = &mut name {
            clip(name, QUESTION_NAME_BYTES_MAX);
        }
        Self { name, is_new, asked }
    }
}

fn questions(questions: &[ReplayQuestion]) -> String {
    let shown: Vec<&str> =
        questions.iter().map(|question| question.name.as_deref().unwrap_or(&question.asked)).collect();
    shown.join(", ")
}

fn json_line(entry: &TapeEntry) -> String {
    let mut line = String::from_utf8(tape::line(entry)).unwrap_or_default();
    line.truncate(line.trim_end().len());
    line
}

impl ReplayEnd {
    /// A difference from the recording.
    #[must_use]
    pub fn differs(asked: Option<&TapeEntry>, expected: Option<&TapeEntry>) -> Self {
        let shown = |entry: &TapeEntry| {
            let mut shown = json_line(entry);
            clip(&mut shown, REASON_BYTES_MAX / 4);
            shown
        };
        Self::Differs { asked: asked.map(shown), expected: expected.map(shown) }
    }

    /// The end that the host set.
    #[must_use]
    pub fn ended(reason: &str) -> Self {
        let mut reason = reason.to_owned();
        clip(&mut reason, REASON_BYTES_MAX / 4);
        Self::Ended { reason }
    }

    fn clipped(self) -> Self {
        match self {
            Self::Differs { asked, expected } => {
                Self::Differs { asked: asked.map(clipped), expected: expected.map(clipped) }
            }
            Self::Asks(mut questions) => {
                questions.truncate(QUESTIONS_MAX);
                for question in &mut questions {
                    clip(&mut question.asked, TEXT_BYTES_MAX);
                    if let Some(name) = &mut question.name {
                        clip(name, TEXT_BYTES_MAX);
                    }
                }
                Self::Asks(questions)
            }
            Self::Ended { reason } => Self::Ended { reason: clipped(reason) },
        }
    }
}

fn differs(asked: Option<&str>, expected: Option<&str>) -> String {
    match (asked, expected) {
        (Some(asked), Some(expected)) => {
            format!("the component asked for something else than the recorded call: {asked}, expected {expected}")
        }
        (Some(asked), None) => format!("the component asked for something that the recording does not have: {asked}"),
        (None, expected) => {
            format!("the component did not ask for all that the recorded call asked for: {}", expected.unwrap_or(""))
        }
    }
}

/// The sentence for a call that reached this limit.
fn over(limit: Limit, value: &str) -> String {
    match limit {
        Limit::Fuel => format!("out of fuel: the call used its whole budget of {value} units"),
        Limit::Deadline => format!("deadline exceeded: the call took longer than {value}"),
        Limit::Memory => format!("out of memory: the call needed more than {value}"),
        Limit::Output => format!("the result is larger than {value}"),
        Limit::OutputItems => format!("the result has more than {value} content items"),
        Limit::HostData => format!("too much data at once between the tool and the host: more than {value}"),
        Limit::Handles => format!("too many handles: the tool held more than {value} at once"),
        Limit::Random => format!("too many random bytes at once: the tool asked for more than {value}"),
        Limit::Arguments => format!("the arguments are larger than {value}"),
        Limit::CallsMax => format!("too many calls of other tools: more than {value}, with those that they make"),
        Limit::HttpHeaderBytes => format!("the tool made a list of HTTP headers that is larger than {value}"),
        _ => format!("more than {value}"),
    }
}

impl CallFailure {
    /// The text for the operator's log, in addition to the external text. May be empty.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Self::Trapped { detail, .. } | Self::SandboxNotStarted { detail } | Self::Host { detail } => detail,
            _ => "",
        }
    }

    /// The outcome, for the audit.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::InvalidInput(_) | Self::Unfit { .. } => Outcome::InvalidInput,
            Self::Failed(_) => Outcome::ToolError,
            Self::OverLimit { limit: Limit::Fuel, .. } => Outcome::OutOfFuel,
            Self::OverLimit { limit: Limit::Memory, .. } => Outcome::OutOfMemory,
            Self::OverLimit { limit: Limit::Deadline, .. } => Outcome::Deadline,
            Self::OverLimit { .. } | Self::Parts => Outcome::LimitExceeded,
            Self::StackOverflow | Self::Trapped { .. } | Self::Exited { .. } => Outcome::Trap,
            Self::Cancelled => Outcome::Cancelled,
            Self::Asked { refused: None } => Outcome::InputRequired,
            Self::Asked { refused: Some(_) } => Outcome::InvalidInput,
            Self::Busy => Outcome::Busy,
            Self::SandboxEnded { .. } | Self::SandboxNotStarted { .. } => Outcome::SandboxEnded,
            Self::Host { .. } | Self::Replayed(_) => Outcome::HostError,
        }
    }

    /// The failure, short enough for a message about a call that may not print anything. A guest
    /// controls the names in a backtrace.
    #[must_use]
    pub fn to_send(mut self) -> Self {
        match &mut self {
            Self::Trapped { reason, detail } => {
                clip(reason, REASON_BYTES_MAX);
                clip(detail, REASON_BYTES_MAX);
            }
            Self::Host { detail: text }
            | Self::SandboxEnded { reason: text }
            | Self::SandboxNotStarted { detail: text } => {
                clip(text, REASON_BYTES_MAX);
            }
            _ => {}
        }
        self
    }

    /// The failure of a call with these limits, as the host accepts it from a process. The host
    /// itself fills in the value of a limit and the end of a process.
    #[must_use]
    pub fn taken(self, limits: &Limits) -> Self {
        match self {
            // A frame may be smaller than the limit allows.
            Self::OverLimit { limit: limit @ Limit::Output, .. } if limits.output_bytes() > TAKEN_BYTES => {
                Self::OverLimit { limit, value: show_bytes(TAKEN_BYTES) }
            }
            Self::OverLimit { limit, .. } => Self::over(limit, limits),
            Self::Unfit { problems: text } => Self::Unfit { problems: problems(text) },
            Self::Trapped { reason, detail } => Self::Trapped { reason: clipped(reason), detail: clipped(detail) },
            Self::Host { detail: text }
            | Self::SandboxEnded { reason: text }
            | Self::SandboxNotStarted { detail: text } => Self::Host { detail: clipped(text) },
            Self::Replayed(end) => Self::Replayed(end.clipped()),
            Self::InvalidInput(_)
            | Self::Failed(_)
            | Self::StackOverflow
            | Self::Parts
            | Self::Exited { .. }
            | Self::Cancelled
            | Self::Asked { .. }
            | Self::Busy => self,
        }
    }

    /// The failure of a call that has a tape: there, a byte of a list counts as four.
    #[must_use]
    pub fn with_tape(self) -> Self {
        match self {
            Self::OverLimit { limit: limit @ Limit::HostData, value } => {
                Self::OverLimit { limit, value: format!("{value}, or a quarter of it as bytes in a recorded call") }
            }
            other => other,
        }
    }

    /// The failure of a call that reached this limit.
    #[must_use]
    pub fn over(limit: Limit, limits: &Limits) -> Self {
        Self::OverLimit { limit, value: limits.show(limit) }
    }
}

/// The error of a host function that ends its call at one of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call has reached its limit \"{}\"", .0.spec().key)]
pub struct LimitReached(pub Limit);

/// A text of a sandbox process, cut to a length that the host accepts.
#[must_use]
pub fn clipped(mut text: String) -> String {
    clip(&mut text, TEXT_BYTES_MAX);
    text
}

/// Limits in messages, by their keys in a manifest.
mod by_key {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use toolcell_policy::Limit;

    pub(super) fn serialize<S: Serializer>(limit: &Limit, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(limit.spec().key)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limit, D::Error> {
        let key = String::deserialize(deserializer)?;
        Limit::from_key(&key).ok_or_else(|| D::Error::custom("no such limit"))
    }
}
