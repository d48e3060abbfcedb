//! The views of all tools and of one.

use std::time::Duration;

use super::{Moment, Place, Reach};

/// The view "Tools".
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// The text that is searched for; empty for all tools.
    pub query: String,
    /// The tools of this page; at most [`ROWS`](crate::bounds::ROWS) are shown.
    pub tools: Vec<ToolRow>,
    /// Tools that match the query, on all pages.
    pub matching: u64,
    /// Tools that are served.
    pub total: u64,
    /// This page, from 1.
    pub page: u64,
    /// All pages; at least 1.
    pub pages: u64,
}

/// A tool in the list.
#[derive(Debug, Clone, Default)]
pub struct ToolRow {
    /// The name, as clients see it.
    pub name: String,
    /// The first sentence or so of its description.
    pub summary: String,
    /// The component's name in the manifest.
    pub component: String,
    /// Things of each kind that it can reach, in few words: `2 hosts, 1 secret`.
    pub reach: String,
    /// Calls since the process started.
    pub calls: u64,
    /// Those of them that ended otherwise than `ok`.
    pub errors: u64,
    /// Median of the time of its calls.
    pub p50: Option<Duration>,
    /// True if its component is in quarantine.
    pub quarantined: bool,
    /// True if an operator has its next calls recorded.
    pub recording: bool,
}

/// The view of one tool.
#[derive(Debug, Clone, Default)]
pub struct ToolPage {
    /// The name, as clients see it.
    pub name: String,
    /// The title for people; may be empty.
    pub title: String,
    /// The description.
    pub description: String,
    /// The component's name in the manifest.
    pub component: String,
    /// Where the component comes from: a path or a reference to a registry.
    pub source: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// Who signed it; none if that is not verified.
    pub signer: Option<String>,
    /// Further facts, name and value: `approval` → `always`.
    pub facts: Vec<(String, String)>,
    /// Things that it can reach; at most [`REACH_ROWS`](crate::bounds::REACH_ROWS) are shown.
    pub reach: Vec<Reach>,
    /// Its limits, and what calls used of them.
    pub limits: Vec<LimitRow>,
    /// Calls that `used` in `limits` counts.
    pub measured: MeasuredCalls,
    /// The lines for the manifest that `toolcell calibrate` would print for the answered calls.
    pub proposal: Option<String>,
    /// True if the manifest has a table for the tool already.
    pub has_table: bool,
    /// The definition as clients get it, as JSON text.
    pub definition: String,
    /// Its input schema as JSON text.
    pub input_schema: String,
    /// Whether its next calls are recorded, or can be.
    pub recording: RecordingState,
    /// The form to try it, as it was last sent.
    pub tried: TryState,
    /// True if it can be tried: the form is rendered with [`Frame::decide`](super::Frame::decide)
    /// only.
    pub can_try: bool,
}

/// Whether the next calls of a tool are recorded, or can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingState {
    /// They cannot be.
    Unavailable {
        /// Why not, a sentence or two.
        reason: String,
        /// The lines that the manifest lacks, where some would help.
        lines: Option<String>,
    },
    /// They can be.
    Offered {
        /// The most calls at once.
        calls_max: u32,
        /// True if other replicas serve the tool as well: they record none of their calls.
        has_replicas: bool,
    },
    /// They are.
    Running {
        /// Recordings that were kept.
        kept: u32,
        /// Calls that are to be recorded.
        calls: u32,
        /// Who began it.
        by: String,
        /// When.
        began: Moment,
    },
}

impl Default for RecordingState {
    fn default() -> Self {
        Self::Offered { calls_max: 100, has_replicas: false }
    }
}

/// Calls of a tool that ran since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuredCalls {
    /// All of them.
    pub all: u64,
    /// How many of them, the newest, the quantiles cover.
    pub newest: u64,
    /// How many of them the tool answered without an error, which proposals are based on.
    pub answered: u64,
}

/// One limit of a tool.
#[derive(Debug, Clone, Default)]
pub struct LimitRow {
    /// Its key in the manifest: `memory`.
    pub key: String,
    /// The unit of all amounts of this row.
    pub unit: Unit,
    /// The limit.
    pub limit: u64,
    /// Use by calls; none where nothing is measured.
    pub used: Option<LimitUse>,
    /// The proposal of `toolcell calibrate`.
    pub proposed: Option<u64>,
    /// Where it is set.
    pub set_in: SetIn,
}

/// Where a limit is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SetIn {
    /// Nowhere: its built-in default holds.
    #[default]
    Default,
    /// In the manifest.
    Manifest(Place),
    /// Not known: the manifest's file is not the one that is served, or cannot be read.
    Unknown,
}

/// Use of a limit by calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitUse {
    /// The median of the newest calls.
    pub p50: u64,
    /// Their 99th percentile.
    pub p99: u64,
    /// The most by any call since the process started.
    pub max: u64,
}

/// The unit of amounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted.
    #[default]
    Count,
    /// Bytes.
    Bytes,
    /// Units of fuel.
    Fuel,
    /// Microseconds.
    Microseconds,
    /// Things in a second.
    PerSecond,
    /// Things in a minute.
    PerMinute,
    /// Things in an hour.
    PerHour,
    /// Things in a day.
    PerDay,
}

/// The form to try a tool, as it was last sent.
#[derive(Debug, Clone, Default)]
pub struct TryState {
    /// The fields, name and text, as the form sent them.
    pub fields: Vec<(String, String)>,
    /// Why the fields are not arguments: one sentence.
    pub problem: Option<String>,
    /// The result of the call.
    pub result: Option<TryResult>,
}

/// The result of a call from the console.
#[derive(Debug, Clone, Default)]
pub struct TryResult {
    /// The host's number of the call.
    pub call: u64,
    /// The outcome, as the audit names it: `ok`.
    pub outcome: String,
    /// True for `ok`.
    pub good: bool,
    /// The time that it took.
    pub took: Duration,
    /// The content of the result; at most [`CONTENT_ITEMS`](crate::bounds::CONTENT_ITEMS) are
    /// shown.
    pub content: Vec<Content>,
    /// Structured content, as JSON text.
    pub structured: Option<String>,
    /// Requests that were denied during the call, in words.
    pub denials: Vec<String>,
    /// Text that the tool printed and logged.
    pub log: String,
}

/// A piece of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// A picture.
    Picture {
        /// Its media type, as the tool gave it.
        media_type: String,
        /// Its bytes, in base64.
        base64: String,
    },
    /// A resource, embedded or linked.
    Resource {
        /// Its address.
        uri: String,
        /// Its text, where it has one.
        text: Option<String>,
    },
    /// Anything else, in words: `audio/wav, 12 KiB`.
    Other(String),
}
