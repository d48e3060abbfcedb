//! Snapshot of a serving process: calls, denials, and calls that wait for a person.
use serde::{Deserialize, Serialize};

/// The activity of a process now. Texts come from components and clients: escape them before
/// showing them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivitySnapshot {
    /// The process.
    pub pid: u32,
    /// The run of the process, which a decision names: another process may get the same id or
    /// socket.
    pub run: String,
    /// The manifest, as an absolute path.
    pub manifest: String,
    /// Seconds since the process began to serve.
    pub uptime_s: u64,
    /// The current generation.
    pub generation: u64,
    /// True if operators may decide: `[console] decide`.
    pub decide: bool,
    /// Figures of the last minute.
    pub minute: MinuteShown,
    /// Running and waiting calls, oldest first: at most 1,024.
    pub calls: Vec<CallShown>,
    /// The number of further calls.
    pub calls_beyond: u64,
    /// Groups of denials, newest first, muted ones last: at most 250.
    pub denials: Vec<DenialShown>,
    /// The number of further groups.
    pub denials_beyond: u64,
    /// Denials without a group, because there were too many.
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
    /// Calls that ended, per second.
    pub calls_per_second: f64,
    /// The median time of calls, without waiting for a person, in microseconds; none without calls.
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
    /// The number of calls above it, which tools made.
    #[serde(default)]
    pub depth: u32,
    /// The tool, as clients see it.
    pub tool: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The caller's name.
    pub caller: String,
    /// Its current state.
    pub state: CallState,
    /// Milliseconds since it arrived.
    pub age_ms: u64,
    /// Milliseconds that the current state may last: in its guest, in a queue, or waiting for a
    /// person.
    pub deadline_ms: u64,
    /// Fuel that it may use.
    pub fuel_max: u64,
    /// Fuel used at the last report, if there was one. Reports come when its instance is made, and
    /// while it computes.
    pub fuel_used: Option<u64>,
    /// Bytes of memory that it may use.
    pub memory_bytes_max: u64,
    /// Bytes of memory used at the last report.
    pub memory_bytes_used: Option<u64>,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// In a queue.
    #[default]
    Waiting,
    /// In its guest.
    Running,
    /// Waiting for a person.
    Asking,
    /// An operator stopped it, and it has not ended yet.
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

/// Denials of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DenialShown {
    /// The number of the group, for decisions.
    pub group: u64,
    /// The component's name in the manifest.
    pub component: String,
    /// The first tools that asked.
    pub tools: Vec<String>,
    /// The first callers whose calls asked.
    #[serde(default)]
    pub callers: Vec<String>,
    /// The capability: `http`, `tcp`, `filesystem`.
    pub capability: String,
    /// What was asked for.
    pub asked: String,
    /// The rule or the reason that decided.
    pub reason: String,
    /// Number of times.
    pub count: u64,
    /// Seconds since the last one.
    pub age_s: u64,
    /// True if an operator muted it.
    pub muted: bool,
    /// The rule that would allow it; none if no rule can.
    pub rule: Option<RuleShown>,
}

/// A rule that would allow a denied request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleShown {
    /// Its section in the manifest.
    pub section: String,
    /// Its lines.
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
    /// True if they are cut: then the call can only be declined.
    #[serde(default)]
    pub arguments_cut: bool,
    /// Milliseconds since it began to wait.
    pub age_ms: u64,
    /// Milliseconds until it is declined automatically.
    pub left_ms: u64,
    /// Seconds for which an approval may be remembered; none if it cannot be.
    pub remember_s: Option<u64>,
    /// Calls of this tool that [`Decision::AllowRun`] allows in this run; none if no tool makes the
    /// call.
    #[serde(default)]
    pub run_calls: Option<u32>,
}

/// An operator's decision, based on a snapshot.
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
    /// End the call with this number.
    Stop(u64),
    /// Mute this group of denials until the server ends.
    Mute(u64),
    /// Show this group of denials again.
    Unmute(u64),
    /// Write the rule for this group of denials into the manifest, and reload.
    Grant(u64),
    /// Let the call of this question run.
    Allow(u64),
    /// Let it run, and further ones of its tool in its run, as many as were shown.
    AllowRun(u64),
    /// Let it run, and similar calls for as long as the manifest allows.
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
            Self::AllowRun(_) => "allow_run",
            Self::Remember(_) => "remember",
            Self::Decline(_) => "decline",
        }
    }

    /// The number of its subject.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Stop(number)
            | Self::Mute(number)
            | Self::Unmute(number)
            | Self::Grant(number)
            | Self::Allow(number)
            | Self::AllowRun(number)
            | Self::Remember(number)
            | Self::Decline(number) => number,
        }
    }
}
