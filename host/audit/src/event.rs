//! What can happen, and what is recorded of it. Must not hold: where records go.
//!
//! Events borrow what they name: making one allocates nothing.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// The longest text that comes from outside (a request's id, a cause), in bytes. Enough to recognise it by; a record
/// must not grow with what a client sends.
pub const TEXT_BYTES_MAX: usize = 1_024;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event")]
pub enum Event<'a> {
    /// The process began to serve.
    #[serde(rename = "host.started")]
    HostStarted(HostStarted<'a>),
    /// A component was loaded and will be served.
    #[serde(rename = "component.loaded")]
    ComponentLoaded(ComponentLoaded<'a>),
    /// A component was not loaded.
    #[serde(rename = "component.refused")]
    ComponentRefused(ComponentRefused<'a>),
    /// A call is about to run.
    #[serde(rename = "call.started")]
    CallStarted(CallStarted<'a>),
    /// A call ended.
    #[serde(rename = "call.finished")]
    CallFinished(CallFinished<'a>),
    /// The process ends.
    #[serde(rename = "host.stopped")]
    HostStopped(HostStopped<'a>),
    /// The sink found the end of a record that was never written whole, and cut it off.
    #[serde(rename = "audit.repaired")]
    AuditRepaired {
        /// How many bytes were cut off.
        dropped_bytes: u64,
    },
}

/// The process began to serve.
#[derive(Debug, Clone, Serialize)]
pub struct HostStarted<'a> {
    /// The program's version.
    pub version: &'a str,
    /// The process id.
    pub pid: u32,
    /// The manifest, as it was named.
    pub manifest: Clipped<'a>,
    /// `sha256:…` of the manifest's text.
    pub manifest_digest: &'a str,
}

/// A component was loaded and will be served.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentLoaded<'a> {
    /// Counts the catalogs of this process, from 1.
    pub generation: u64,
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes.
    pub digest: &'a str,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// `sha256:…` of its policy's canonical form.
    pub policy_digest: &'a str,
    /// The names of its tools, as clients see them.
    pub tools: &'a [&'a str],
}

/// A component was not loaded.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentRefused<'a> {
    /// The catalog it would have been part of.
    pub generation: u64,
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes, where they could be read.
    pub digest: Option<&'a str>,
    /// Why.
    pub cause: Clipped<'a>,
}

/// A call is about to run.
#[derive(Debug, Clone, Serialize)]
pub struct CallStarted<'a> {
    /// Counts the calls of this process; `call.finished` has the same.
    pub id: u64,
    /// The catalog the call runs on.
    pub generation: u64,
    /// `legacy` or `modern`.
    pub era: &'a str,
    /// The protocol's revision, such as `2025-11-25`.
    pub revision: &'a str,
    /// Who calls; `local` where the transport has one caller.
    pub caller: Clipped<'a>,
    /// The request's id, as the client wrote it.
    pub request: Clipped<'a>,
    /// The W3C trace context's trace id, where the client sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Clipped<'a>>,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// `sha256:…` of the component's bytes.
    pub component_digest: &'a str,
    /// `sha256:…` of its policy's canonical form.
    pub policy_digest: &'a str,
    /// `sha256:…` of the arguments as the client wrote them. The arguments themselves are not recorded.
    pub arguments_digest: &'a str,
    /// How many bytes they have.
    pub arguments_bytes: u64,
}

/// A call ended.
#[derive(Debug, Clone, Serialize)]
pub struct CallFinished<'a> {
    /// As in `call.started`.
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
    /// What an operator should know beside the outcome: a trap's backtrace, a fault of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Clipped<'a>>,
}

/// The process ends.
#[derive(Debug, Clone, Serialize)]
pub struct HostStopped<'a> {
    /// Why: the end of input, a signal.
    pub reason: Clipped<'a>,
    /// How many calls were started.
    pub calls: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It gave a result.
    Ok,
    /// It gave a result that says that it failed, or failed with words of its own.
    ToolError,
    /// The arguments were refused, by the schema or by the tool.
    InvalidInput,
    /// The result was refused: not JSON, not as the output schema says.
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
    /// There was no place to run it.
    Busy,
    /// The caller had called the tool too often.
    RateLimited,
    /// The host failed, not the guest.
    HostError,
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Units of fuel.
    pub fuel: u64,
    /// The most that all memories and tables had together at one time, in bytes.
    pub memory_peak_bytes: u64,
    /// Wall clock; in records whole microseconds, as `duration_us`.
    #[serde(rename = "duration_us", serialize_with = "as_micros")]
    pub duration: Duration,
    /// Standard output, standard error and log lines, in bytes.
    pub log_bytes: u64,
    /// The result, in bytes.
    pub output_bytes: u64,
}

/// A text from outside: longer ones than [`TEXT_BYTES_MAX`] are recorded cut, with `…` at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clipped<'a>(pub &'a str);

impl Outcome {
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
            Self::HostError => "host_error",
        }
    }
}

impl<'a> From<&'a str> for Clipped<'a> {
    fn from(text: &'a str) -> Self {
        Self(text)
    }
}

impl Serialize for Clipped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.len() <= TEXT_BYTES_MAX {
            return serializer.serialize_str(self.0);
        }
        let end = self.0.floor_char_boundary(TEXT_BYTES_MAX);
        serializer.collect_str(&format_args!("{}…", self.0.get(..end).unwrap_or_default()))
    }
}

fn as_micros<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn fields_have_a_fixed_order_and_durations_are_microseconds() {
        let finished = Event::CallFinished(CallFinished {
            id: 7,
            outcome: Outcome::OutOfFuel,
            usage: Usage {
                fuel: 1,
                memory_peak_bytes: 2,
                duration: Duration::from_millis(3),
                log_bytes: 4,
                output_bytes: 5,
            },
            detail: None,
        });
        assert_eq!(
            serde_json::to_string(&finished).unwrap(),
            "{\"event\":\"call.finished\",\"id\":7,\"outcome\":\"out_of_fuel\",\"usage\":{\"fuel\":1,\
             \"memory_peak_bytes\":2,\"duration_us\":3000,\"log_bytes\":4,\"output_bytes\":5}}"
        );
    }

    #[test]
    fn a_text_from_outside_is_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let shown: String = serde_json::from_str(&serde_json::to_string(&Clipped(&long)).unwrap()).unwrap();
        assert_eq!(shown, format!("{}…", "é".repeat(TEXT_BYTES_MAX / 2)));
        assert_eq!(serde_json::to_string(&Clipped("a\u{1b}")).unwrap(), "\"a\\u001b\"");
    }

    #[test]
    fn outcomes_are_recorded_under_their_names() {
        for outcome in [
            Outcome::Ok,
            Outcome::ToolError,
            Outcome::InvalidInput,
            Outcome::InvalidOutput,
            Outcome::Trap,
            Outcome::OutOfFuel,
            Outcome::OutOfMemory,
            Outcome::LimitExceeded,
            Outcome::Deadline,
            Outcome::Cancelled,
            Outcome::Busy,
            Outcome::RateLimited,
            Outcome::HostError,
        ] {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), format!("\"{}\"", outcome.name()));
        }
    }
}
