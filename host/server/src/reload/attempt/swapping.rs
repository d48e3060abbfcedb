//! Replaces the serving catalog: recorded first, then swapped, then announced.
use std::collections::HashMap;
use std::sync::Arc;

use toolcell_audit::{CatalogReplaced, Clipped, Event, SinkError};
use toolcell_mcp::{Host as _, ServedCatalog as _};
use toolcell_policy::{Diagnostic, Manifest};

use super::reading::BuiltGeneration;
use super::{ReloadOutcome, Reloader};
use crate::catalog::{Catalog, ToolOffer, record_components};
use crate::lock;
use crate::reload::difference::Difference;
use crate::reload::failure::ReloadFailure;
use crate::reload::restart;

impl Reloader {
    /// Applies the manifest's settings of the process, and replaces the catalog if the new one
    /// differs.
    pub(super) fn swap(&mut self, trigger: &'static str, old: &Catalog, built: BuiltGeneration) -> ReloadOutcome {
        log_left_out(old, &built.catalog);
        self.log_waiting_changes(&built.manifest);
        self.server = built.manifest.server().clone();
        self.setup.services.log.follow(self.server.log().into());
        self.log_warnings(&built.warnings);
        if Difference::is_none(old, &built.catalog) {
            return ReloadOutcome::Unchanged;
        }
        match self.setup.logins.open(&built.manifest) {
            Ok(line) => line.iter().for_each(|line| self.setup.services.log.announce(line)),
            Err(error) => return ReloadOutcome::Failed(ReloadFailure::saying(&error.to_string())),
        }
        let outcome = self.replace(trigger, old, built.catalog);
        self.end_logins(old, &built.manifest);
        outcome
    }

    /// Ends the logins of callers who have no right to them any more.
    fn end_logins(&self, old: &Catalog, manifest: &Manifest) {
        let new = self.setup.current.snapshot();
        if new.login_use() != old.login_use() {
            let policies = manifest.caller_logins().into_iter().chain(old.caller_logins()).collect();
            self.setup.logins.end_without_right(new.login_use(), policies);
        }
    }

    /// Records, then swaps: a change that cannot be recorded is not made.
    fn replace(&self, trigger: &'static str, old: &Catalog, new: Catalog) -> ReloadOutcome {
        let difference = Difference::between(old, &new);
        let generation = new.tools().generation();
        if let Err(problem) = self.setup.builder.raise_walls(&new, old) {
            return ReloadOutcome::Failed(ReloadFailure::saying(&problem));
        }
        if let Err(error) = self.record(trigger, &difference, old, &new) {
            return ReloadOutcome::Failed(ReloadFailure::saying(&format!("the audit cannot be written: {error}")));
        }
        let new = Arc::new(new);
        self.setup.current.replace(Arc::clone(&new));
        new.end_ordered_recordings();
        if self.server.narrow_cancels() {
            self.end_narrowed(&new);
        }
        let announced = match &self.setup.announcements {
            Some(announcements) => {
                self.setup.server.resources_replaced_by(old, &new);
                announcements.changed(old, &new)
            }
            None => self.setup.server.catalog_replaced(old, &new),
        };
        ReloadOutcome::Replaced { generation, announced, summary: difference.summary() }
    }

    fn record(&self, trigger: &str, difference: &Difference, old: &Catalog, new: &Catalog) -> Result<(), SinkError> {
        let changed = |name: &str| difference.components.iter().any(|(changed, _)| changed == name);
        record_components(&self.setup.services.sink, new, changed)?;
        let summary = difference.summary();
        self.setup.services.sink.record(|| {
            Event::CatalogReplaced(CatalogReplaced {
                generation: new.tools().generation(),
                replaces: old.tools().generation(),
                trigger,
                summary: Clipped(&summary),
                tools_added: difference.tools_added.len() as u64,
                tools_removed: difference.tools_removed.len() as u64,
                tools_changed: difference.tools_changed.len() as u64,
            })
        })
    }

    /// Ends calls on earlier generations whose tools were narrowed. A component that left the
    /// manifest has no rights. A tool that new code no longer lists was not narrowed.
    fn end_narrowed(&self, new: &Catalog) {
        let now: HashMap<(&str, &str), ToolOffer<'_>> =
            new.offers().map(|offer| ((offer.component().name(), offer.own_name()), offer)).collect();
        for earlier in self.setup.current.held() {
            for offer in earlier.offers() {
                let component = offer.component().name();
                let removed = new.component(component).is_none();
                let narrower = |now: &ToolOffer<'_>| lock::narrowed(offer.grants(), now.grants());
                if removed || now.get(&(component, offer.own_name())).is_some_and(narrower) {
                    offer.narrow(removed);
                }
            }
        }
    }

    fn log_waiting_changes(&self, manifest: &Manifest) {
        let mut keys = restart::waiting(&self.setup.manifest, manifest);
        keys.extend(self.setup.logins.waits(manifest).then(|| "[logins]".to_owned()));
        let shown = keys.join(", ");
        if self.setup.current.journal.waits_for_start(keys) {
            tracing::warn!("changed, and in effect from the next start: {shown}");
        }
    }

    fn log_warnings(&mut self, warnings: &[Diagnostic]) {
        for warning in warnings {
            if self.setup.warned.insert(warning.message().to_owned()) {
                tracing::warn!("{}", warning.message());
            }
        }
    }
}

/// Logs newly left out components.
fn log_left_out(old: &Catalog, new: &Catalog) {
    for component in new.left_out().iter().filter(|component| !old.left_out().contains(component)) {
        tracing::error!("left out: {}", component.problem);
    }
}
