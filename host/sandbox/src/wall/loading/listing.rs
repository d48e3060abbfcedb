//! The list of a component's tools as a loader gave it, now or at an earlier start.
use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;
use toolcell_wall::encoding::encode;
use toolcell_wall::load::definitions::SchemaLimits;
use toolcell_wall::load::descriptions::WrittenDescriptions;

use toolcell_wall::contract;
use toolcell_wall::report::{CallReport, ListedBeside};

/// A list, or why there is none.
pub enum ListingResult {
    /// The report on listing, what else is listed, and the findings about the schemas of the tools.
    Report(Box<CallReport<Vec<contract::GuestTool>>>, ListedBeside, SchemaFindings),
    /// A description of the component does not parse as WIT: its place, and the problem there.
    NotWit(String),
}

impl ListingResult {
    /// True if tools were listed, and there was time to check all of them.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Report(report, _, schemas) => report.outcome.is_ok() && !schemas.too_late,
            Self::NotWit(_) => true,
        }
    }
}

/// What listing a component's tools needs besides the component.
#[derive(Clone, Copy, Debug)]
pub struct ListJob<'a> {
    /// The limits on the call that lists.
    pub limits: &'a Limits,
    /// Bytes of memory that a loader may take, without those of the call.
    pub memory_bytes_max: u64,
    /// Descriptions from outside of the component.
    pub written: &'a WrittenDescriptions,
    /// The limits on the schemas of the tools.
    pub schemas: SchemaLimits,
}

/// The name of everything that a list of tools depends on.
pub(crate) struct ListName(String);

impl ListName {
    /// The name for a component whose code has this name. It begins with `kind`. `None` for one
    /// whose list depends on files of `toolcell dev`.
    pub(crate) fn of(kind: &str, name: &str, job: &ListJob<'_>) -> Option<Self> {
        // The next save makes another list, and this one is never needed again.
        let ListJob { limits, written, schemas, .. } = *job;
        if written.dev_source.is_some() {
            return None;
        }
        let limits: Vec<(&str, u64)> = limits.entries().collect();
        // Another version of this program may describe a typed component differently.
        let of = (env!("CARGO_PKG_VERSION"), name, limits, written, schemas.bounds());
        Some(Self(format!("{kind}-{}", blake3::hash(&encode(&of).ok()?).to_hex())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
