//! Activity of a serving process as one bounded value: calls, denials, and calls that wait for a
//! person.
use serde::{Deserialize, Serialize};

/// The activity of a process now. Texts are of components and clients: escape them before they are
/// shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivitySnapshot {
    /// The process.
    pub pid: u32,
    /// The run of the process, which a decision names: another process may get its id, or its
    /// socket.
    pub run: String,
    /// The manifest, as an absolute path.
    pub manifest: String,
    /// Seconds since the process began to serve.
    pub uptime_s: u64,
    /// The generation that serves.
    pub generation: u64,
    /// True if operators may decide: `[console] decide`.
    pub decide: bool,
    /// Figures of the last minute.
    pub minute: MinuteShown,
    /// Calls that run or wait, oldest first: at most 1,024.
    pub calls: Vec<CallShown>,
    /// Further calls, which are only counted.
    pub calls_beyond: u64,
    /// Groups of denials, newest first, and those that are muted last: at most 250.
    pub denials: Vec<DenialShown>,
    /// Further groups.
    pub denials_beyond: u64,
    /// Denials that belong to no group, because there were too many.
    pub denials_ungrouped: u64,
    /// Calls that wait for a person, oldest first: at most 256.
    pub approvals: Vec<ApprovalShown>,
}

/// Figures of the last minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MinuteShown {
    /// Calls that run now.
    pub running: u64,
    /// Calls that wait in queues now.
    pub waiting: u64,
    /// Calls that ended, for each second.
    pub calls_per_second: f64,
    /// The median of the time of calls without that before a person, in microseconds; none without
    /// calls.
    pub p50_us: Option<u64>,
    /// The 99th percentile of the same.
    pub p99_us: Option<u64>,
    /// Calls that ended otherwise than `ok`.
    pub errors: u64,
    /// Requests of guests that no grant allows.
    pub denials: u64,
}

/// A call that runs or waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallShown {
    /// The host's number of the call.
    pub call: u64,
    /// The tool, as clients see it.
    pub tool: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The caller's name.
    pub caller: String,
    /// Where it is on its way.
    pub state: CallState,
    /// Milliseconds since it came.
    pub age_ms: u64,
    /// Milliseconds that it may be where it is: in its guest, in a queue, or before a person.
    pub deadline_ms: u64,
    /// Fuel that it may use.
    pub fuel_max: u64,
    /// Fuel that it had used at the last report; none before. It is reported once its instance is
    /// there, and while it computes.
    pub fuel_used: Option<u64>,
    /// Bytes of memory that it may use.
    pub memory_bytes_max: u64,
    /// Bytes of memory that it had taken then.
    pub memory_bytes_used: Option<u64>,
}

/// Where a call is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// In a queue.
    #[default]
    Waiting,
    /// In its guest.
    Running,
    /// Before a person.
    Asking,
    /// An operator ended it, and it has not ended yet.
    Stopping,
}

impl CallState {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Stopping => "stopping",
        }
    }
}

/// Denials of the same thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DenialShown {
    /// The number of the group, for decisions.
    pub group: u64,
    /// The component's name in the manifest.
    pub component: String,
    /// Tools that asked; the first ones.
    pub tools: Vec<String>,
    /// Callers whose calls asked; the first ones.
    #[serde(default)]
    pub callers: Vec<String>,
    /// The kind: `http`, `tcp`, `filesystem`.
    pub capability: String,
    /// The thing that was asked for.
    pub asked: String,
    /// The rule or the reason that decided.
    pub reason: String,
    /// Number of times.
    pub count: u64,
    /// Seconds since the last one.
    pub age_s: u64,
    /// True if an operator muted it.
    pub muted: bool,
    /// The rule that would allow it; none where nothing can.
    pub rule: Option<RuleShown>,
}

/// A rule that would allow what was denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleShown {
    /// The section of the manifest.
    pub section: String,
    /// The lines there.
    pub line: String,
    /// True if the server may write it into the manifest.
    pub can_apply: bool,
}

/// A call that waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalShown {
    /// The number of the question, for decisions.
    pub question_id: u64,
    /// The host's number of the call.
    pub call: u64,
    /// The tool, as clients see it.
    pub tool: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The caller's name.
    pub caller: String,
    /// The question: one sentence.
    pub question: String,
    /// The arguments as JSON, clipped.
    pub arguments: String,
    /// True if not all of them are there: the call can only be declined.
    #[serde(default)]
    pub arguments_cut: bool,
    /// Milliseconds since it waits.
    pub age_ms: u64,
    /// Milliseconds until it is declined by itself.
    pub left_ms: u64,
    /// Seconds for which an allowance may be remembered; none where it cannot be.
    pub remember_s: Option<u64>,
}

/// A decision of an operator, about what a snapshot showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// [`ActivitySnapshot::run`] of the process that is meant.
    pub run: String,
    /// The decision.
    pub decision: Decision,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// End the call of this number.
    Stop(u64),
    /// Mute this group of denials until the server ends.
    Mute(u64),
    /// Show this group of denials again.
    Unmute(u64),
    /// Write the rule for this group of denials into the manifest, and reload.
    Grant(u64),
    /// Let the call of this question run.
    Allow(u64),
    /// Let it run, and calls like it for as long as the manifest says.
    Remember(u64),
    /// Do not let it run.
    Decline(u64),
}

impl Decision {
    /// Its name in the audit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop(_) => "stop",
            Self::Mute(_) => "mute",
            Self::Unmute(_) => "unmute",
            Self::Grant(_) => "grant",
            Self::Allow(_) => "allow",
            Self::Remember(_) => "remember",
            Self::Decline(_) => "decline",
        }
    }

    /// The number of what it is about.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Stop(number)
            | Self::Mute(number)
            | Self::Unmute(number)
            | Self::Grant(number)
            | Self::Allow(number)
            | Self::Remember(number)
            | Self::Decline(number) => number,
        }
    }
}
