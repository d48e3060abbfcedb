//! Reports how an attempt ended: to the log, the audit and the journal.
use std::time::{Instant, SystemTime};

use toolcell_audit::{CatalogRefused, Clipped, Event};

use super::{ReloadOutcome, Reloader};
use crate::reload::failure::ReloadFailure;
use crate::reload::journal::ReloadAttempt;

/// Ends every message of a failed attempt, so that nobody believes that a right is already revoked.
const SERVES_ON: &str = "and none of the change is applied: a right that it takes away is not taken away yet";

impl Reloader {
    /// Logs, records and remembers an outcome.
    pub fn report(&self, trigger: &'static str, began: Instant, outcome: &ReloadOutcome) {
        let generation = self.generation();
        let (replaced, announced, summary) = match outcome {
            ReloadOutcome::Unchanged => {
                self.setup.current.journal.is_well();
                tracing::debug!("checked ({trigger}): the files match what is served");
                return;
            }
            ReloadOutcome::Replaced { announced, summary, .. } => (true, *announced, summary.clone()),
            ReloadOutcome::Failed(failed) => (false, false, failed.summary.clone()),
        };
        let took = began.elapsed();
        let time = SystemTime::now();
        let took_ms = took.as_millis();
        let failed = match outcome {
            ReloadOutcome::Failed(failed) => {
                self.record_failure(trigger, failed);
                if self.setup.current.journal.failed().is_some_and(|before| before.problems == failed.problems) {
                    tracing::error!("not reloaded, as before: {summary}; generation {generation} serves on");
                } else {
                    tracing::error!(
                        "not reloaded: {summary}; generation {generation} serves on, {SERVES_ON}\n{}",
                        failed.drawn
                    );
                }
                Some(failed.clone())
            }
            _ => {
                let told = if announced { "clients are notified of the new list" } else { "the list is the same" };
                tracing::info!("reloaded in {took_ms} ms: generation {generation}: {summary}; {told}");
                None
            }
        };
        let attempted = ReloadAttempt { time, trigger, generation, replaced, announced, took, summary };
        self.setup.current.journal.attempted(attempted, failed);
    }

    fn record_failure(&self, trigger: &str, failed: &ReloadFailure) {
        let cause = if failed.drawn.is_empty() { &failed.summary } else { &failed.drawn };
        let event = || {
            let generation = self.generation();
            let cause = Clipped(cause);
            Event::CatalogRefused(CatalogRefused { generation, trigger, cause })
        };
        if let Err(error) = self.setup.services.sink.record(event) {
            tracing::error!("a failed reload is missing from the audit: {error}");
        }
    }
}
