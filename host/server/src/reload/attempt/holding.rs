//! Holds back what differs from the lock, until somebody approves it.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_audit::{Clipped, ComponentQuarantined, Event};
use toolcell_mcp::Host as _;

use super::reading::BuiltGeneration;
use super::{DETAILS_BYTES_MAX, Reloader};
use crate::catalog::Catalog;
use crate::lock::{self, Drift, Lock, drift};
use crate::machine::shell;
use crate::reload::failure::ReloadFailure;
use crate::reload::journal::Quarantined;

impl Reloader {
    /// The generation without components that differ from the lock, or without `--locked`, without
    /// those whose signers differ. Their old versions stay in service; new components are not
    /// served.
    pub(super) fn hold_back(
        &mut self,
        old: &Catalog,
        built: BuiltGeneration,
    ) -> Result<BuiltGeneration, ReloadFailure> {
        let Some(locked) = &built.locked else {
            self.proposed = None;
            self.report_quarantined(Vec::new())?;
            return Ok(built);
        };
        let is_withheld = |drift: &Drift| self.withheld.iter().any(|held| held.name == drift.component);
        // A component that is left out is not a difference.
        let is_left_out = |drift: &Drift| built.catalog.left_out().iter().any(|out| out.name == drift.component);
        let drifts = drift(locked, &Lock::of(&built.catalog)).into_iter();
        let drifts = drifts.filter(|drift| !is_withheld(drift) && !is_left_out(drift));
        let drifts = drifts.filter(|drift| self.setup.locked || drift.lost_signers);
        let (less, mut held): (Vec<Drift>, Vec<Drift>) = drifts.partition(|drift| drift.only_less);
        held.extend(self.withheld.iter().map(|withheld| lock::withheld(locked, withheld)));
        let less: Vec<String> = less.into_iter().map(|drift| drift.component).collect();
        let shown = less.join(", ");
        if self.setup.current.journal.serves_less(less) {
            let text =
                format!("less is served than the lock pins: {shown}; `toolcell lock` or `toolcell approve` notes that");
            tracing::warn!("{}", shell::named(&text));
        }
        let names: BTreeSet<String> = held.iter().map(|drift| drift.component.clone()).collect();
        self.unapproved.clear();
        self.report_quarantined(held)?;
        if names.is_empty() {
            self.proposed = None;
            return Ok(built);
        }
        let whole = Arc::new(built.catalog);
        self.proposed = Some(Arc::clone(&whole));
        let collide = |error| ReloadFailure::saying(&format!("with the quarantined components as they were, {error}"));
        let catalog = whole.holding(&names, old).map_err(collide)?;
        Ok(BuiltGeneration { catalog, ..built })
    }

    fn report_quarantined(&self, held: Vec<Drift>) -> Result<(), ReloadFailure> {
        let since = SystemTime::now();
        let mut room = DETAILS_BYTES_MAX;
        let quarantined = held.into_iter().map(|drift| {
            let Drift { component, differences, details, digest, other_signers, .. } = drift;
            let details = Arc::new(details.within(&mut room));
            let is_withheld = self.withheld.iter().any(|held| held.name == component);
            Quarantined { component, digest, differences, details, is_withheld, read: None, other_signers, since }
        });
        for held in self.setup.current.journal.quarantine(quarantined.collect()) {
            let name = held.component.as_str();
            let differences = held.differences.join("\n  ");
            self.note(Event::ComponentQuarantined(ComponentQuarantined {
                generation: self.generation(),
                name,
                digest: &held.digest,
                differences: Clipped(&differences),
            }))?;
            let serves = match self.setup.current.snapshot().component(name) {
                Some(_) => "serves as it was, with every right that it had,",
                None => "does not serve",
            };
            let approving = lock::approving(name, &held.digest, held.other_signers);
            let text = format!(
                "quarantined: {name} is not as the lock has it, and {serves} until `{approving}`\n  {differences}"
            );
            tracing::error!("{}", shell::named(&text));
        }
        Ok(())
    }
}
