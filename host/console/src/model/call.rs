//! The view of one call, from start to end.

use std::time::Duration;

use super::{AuditRow, ChainState, DenialGroup, Moment, Unit};

/// The view of one call.
#[derive(Debug, Clone, Default)]
pub struct CallPage {
    /// The call: its tool, caller, outcome and time.
    pub call: AuditRow,
    /// Its component, `sha256:…` of it, era, request and the like, name and value.
    pub facts: Vec<(String, String)>,
    /// The arguments, as JSON text; none where only their digest is kept.
    pub arguments: Option<String>,
    /// Its records, oldest first.
    pub records: Vec<CallRecordLine>,
    /// Records that are left out, because there are too many.
    pub left_out: u64,
    /// Its denials, as its records have them.
    pub denials: Vec<DenialGroup>,
    /// Resources that it used.
    pub usage: Vec<CallUsage>,
    /// True if the version that ran is served now, so that its limits are known.
    pub is_served: bool,
    /// Parts of its time, in the order of their start.
    pub spans: Vec<CallSpan>,
    /// Text that it printed and logged; none where that is not kept.
    pub log: Option<String>,
    /// The chain, as it was checked last: perhaps before this call.
    pub chain: ChainState,
}

/// A record of the call.
#[derive(Debug, Clone, Default)]
pub struct CallRecordLine {
    /// Its time.
    pub at: Moment,
    /// Its type: `call.started`.
    pub record: String,
    /// The record, as JSON text.
    pub json: String,
}

/// Use of one limit by the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// The name: `memory`.
    pub key: String,
    /// The unit of both amounts.
    pub unit: Unit,
    /// The use.
    pub used: u64,
    /// The limit, where there is one.
    pub limit: Option<u64>,
}

/// A part of the call's time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSpan {
    /// Its name: `queue`, `instance`, `run`, `GET api.example`.
    pub name: String,
    /// From the start of the call to the start of the part.
    pub start: Duration,
    /// The time that it took.
    pub took: Duration,
    /// Number of parts that it is within.
    pub depth: u8,
    /// True if it failed.
    pub failed: bool,
}
