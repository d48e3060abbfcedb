//! Why a call gave no result: one variant per cause, with a text for the model and one for the operator.
use toolcell_audit::Outcome;
use toolcell_policy::{Limit, Limits};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::caller::asking::Ended;
use crate::shape::program;
use crate::shape::typed::EncodeError;
use crate::wasi::cli::OutputFull;
use crate::wasi::keyvalue::Fault;
use crate::wasi::state::CallState;

/// Why a call gave no result.
///
/// `Display` is the external text: one clear sentence for the model, without host paths, addresses or backtraces.
/// [`Failure::detail`] is for the operator's log.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The tool says the arguments are wrong.
    #[error("{0}")]
    InvalidInput(String),
    /// The tool says its work failed.
    #[error("{0}")]
    Failed(String),
    /// A limit of the manifest ended the call.
    #[error("{} (limit \"{}\")", over(*.limit, .value), .limit.spec().key)]
    OverLimit {
        /// Which limit.
        limit: Limit,
        /// Its value, as a manifest writes it.
        value: String,
    },
    /// The WebAssembly stack ran over.
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
        /// 0 for success, as the guest saw it.
        status: i32,
    },
    /// The caller gave up.
    #[error("the call was cancelled")]
    Cancelled,
    /// The guest asked, and the call goes on when its caller comes back with the answers; or its caller is told by the
    /// protocol why it does not.
    #[error("{}", .refused.as_deref().unwrap_or("the call goes on once there are answers"))]
    Asked {
        /// Why it does not.
        refused: Option<String>,
    },
    /// No room in the instance pool in time.
    #[error("busy: the host is running as many calls as it can; try again")]
    Busy,
    /// The host failed, not the guest.
    #[error("the host could not run the tool; its log says why")]
    Host {
        /// What went wrong, for the operator.
        detail: String,
    },
}

/// What it means that this limit was reached.
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
        Limit::HttpHeaderBytes => format!("the tool made a list of HTTP headers that is larger than {value}"),
        _ => format!("more than {value}"),
    }
}

impl Failure {
    /// What the operator's log should say beside the external text; empty where there is no more.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Self::Trapped { detail, .. } | Self::Host { detail } => detail,
            _ => "",
        }
    }

    /// The outcome as the audit names it.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::InvalidInput(_) => Outcome::InvalidInput,
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
            Self::Host { .. } => Outcome::HostError,
        }
    }

    /// This limit ended the call.
    #[must_use]
    pub fn over(limit: Limit, limits: &Limits) -> Self {
        Self::OverLimit { limit, value: limits.show(limit) }
    }

    /// Sorts what wasmtime returned. `state` tells what the guest was refused before.
    pub(crate) fn sort(error: &wasmtime::Error, state: &CallState, limits: &Limits) -> Self {
        if let Some(exit) = error.downcast_ref::<I32Exit>() {
            return Self::Exited { status: exit.0 };
        }
        if let Some(trap) = error.downcast_ref::<Trap>() {
            return Self::sort_trap(*trap, error, state, limits);
        }
        if let Some(ended) = error.downcast_ref::<Ended>() {
            return Self::Asked { refused: ended.refused.clone() };
        }
        if error.downcast_ref::<OutputFull>().is_some() {
            return Self::over(Limit::Output, limits);
        }
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return Self::Host { detail: fault.to_string() };
        }
        if let Some(EncodeError::TooLong) = error.downcast_ref::<EncodeError>() {
            return Self::over(Limit::Output, limits);
        }
        if state.limiter.refused() {
            return Self::over(Limit::Memory, limits);
        }
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let says = |words: &str| causes.iter().any(|cause| cause.contains(words));
        // wasmtime keeps these types to itself; the fixtures under tests/ trip each, so a changed wording shows.
        if says("fuel allocated for hostcalls has been exhausted") {
            return Self::over(Limit::HostData, limits);
        }
        if says("store handle limit exceeded") || says("resource table has no free keys") {
            return Self::over(Limit::Handles, limits);
        }
        if says("requested len") {
            return Self::over(Limit::Random, limits);
        }
        if says("total size of fields exceeds limit") || says("too many fields in the field map") {
            return Self::over(Limit::HttpHeaderBytes, limits);
        }
        if says("resource limit exceeded") {
            return Self::Parts;
        }
        Self::Trapped { reason: reason(causes.last().map_or("", String::as_str)), detail: format!("{error:?}") }
    }

    fn sort_trap(trap: Trap, error: &wasmtime::Error, state: &CallState, limits: &Limits) -> Self {
        match trap {
            Trap::OutOfFuel => Self::over(Limit::Fuel, limits),
            Trap::StackOverflow => Self::StackOverflow,
            _ if state.limiter.refused() => Self::over(Limit::Memory, limits),
            // wasmtime's own text ends in a longer explanation for some traps; the first line names it.
            _ => {
                let mut reason = reason(&trap.to_string());
                // Runtimes print why they give up before they trap.
                let said = program::plain(&state.last_words());
                if !said.is_empty() {
                    reason = format!("{reason}; it last printed:\n{said}");
                }
                Self::Trapped { reason, detail: format!("{error:?}") }
            }
        }
    }
}

/// The first line of a trap's text, without the words that every trap begins with.
fn reason(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("wasm trap: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_trap_is_named_once() {
        assert_eq!(reason("wasm trap: integer divide by zero\nmore"), "integer divide by zero");
    }
}
