//! Calls as the console and `toolcell top` show them: running calls, figures of the last minute and
//! hour, denials, and calls that wait for an operator. All of it is in memory, and bounded: some
//! 350 KiB, and two for each of at most a thousand groups of denials. Must not hold: pages.
//!
//! Calls never wait for a lock that a reader holds. The exception is the queue of approvals, whose
//! calls wait for a person anyway.
mod approvals;
mod denials;
mod figures;
mod phases;
mod recent;
mod running;

use std::sync::Arc;
use std::time::SystemTime;

pub use approvals::{ApprovalQueue, DecidedCall, OperatorAnswer, PendingApproval, PendingArguments};
pub use denials::{DenialGroup, DenialGroups, DeniedRequest};
pub use figures::{Figures, HourFigures};
pub use phases::CallPhase;
pub use recent::{CallPart, RecentCall};
pub use running::{LiveCall, RunningCalls, TrackedCall, TreePlace};

/// Calls as operators see them, over all generations.
pub struct Activity {
    pub running: Arc<RunningCalls>,
    pub denials: DenialGroups,
    pub approvals: ApprovalQueue,
    /// When the process began to serve.
    pub started: SystemTime,
}

impl Activity {
    pub fn new(started: SystemTime) -> Self {
        Self {
            running: Arc::new(RunningCalls::default()),
            denials: DenialGroups::default(),
            approvals: ApprovalQueue::default(),
            started,
        }
    }

    pub fn figures(&self) -> &Figures {
        &self.running.figures
    }
}
