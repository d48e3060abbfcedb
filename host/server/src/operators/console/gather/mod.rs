//! The data of views: read from the server's own state, and bounded. Must not hold: pages,
//! requests, or decisions.
mod audit;
mod call;
mod callers;
mod changes;
mod denials;
mod export;
mod limits;
mod now;
mod records;
mod tools;
mod written;

use std::path::PathBuf;
use std::sync::Arc;

use toolcell_console::model::{Badges, CallLink};
use toolcell_mcp::Host as _;

use super::holding::HeldOutcomes;
use crate::catalog::{Catalog, Services};
use crate::identity::{Authenticator, TokenFile};
use crate::observing::activity::Activity;
use crate::operators::health::Health;
use crate::reload::Current;

pub use audit::{Search, check_chain};
pub use callers::token_id;
pub use denials::Offers;
pub use export::{ExportForm, export};
pub use records::chains_to_read;
pub use tools::as_content;

/// Where the data of views comes from.
pub struct Sources {
    pub current: Arc<Current>,
    pub services: Arc<Services>,
    pub activity: Arc<Activity>,
    pub health: Arc<Health>,
    /// The file of tokens, if there is one.
    pub tokens: Option<TokenFile>,
    /// Knows when tokens were last used; `None` if callers have none.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The manifest.
    pub manifest: PathBuf,
    /// True if the manifest's file may be written.
    pub is_written: bool,
    /// True if only components in the lock are served.
    pub locked: bool,
    /// How recorded calls end with versions that wait.
    pub held: HeldOutcomes,
}

impl Sources {
    /// Counts next to the names of views.
    pub fn badges(&self) -> Badges {
        Badges {
            denials: self.open_denials().len() as u64,
            changes: self.current.journal.quarantined().len() as u64,
            approvals: self.activity.approvals.count() as u64,
        }
    }

    /// True if operators may decide.
    pub fn decides(&self) -> bool {
        self.catalog().settings.console.decide
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.current.snapshot()
    }
}

/// Names a call of this process in links.
pub fn link(call: u64) -> CallLink {
    CallLink { id: format!("{THIS_RUN}.{call}"), number: call }
}

/// Stands for the run of this process in names of calls.
const THIS_RUN: &str = "now";
