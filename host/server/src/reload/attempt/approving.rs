//! Quarantined components: read, and approved here or by another replica.
use std::sync::Arc;
use std::time::Duration;

use toolcell_audit::{ComponentApproved, Event};
use toolcell_mcp::{Host as _, ServedCatalog as _};
use toolcell_policy::Severity;

use super::reading::{log_slow, read_lock};
use super::{DETAILS_BYTES_MAX, Reloader};
use crate::catalog::{Basis, Built, Pin, Tolerance, Withheld, folder_of};
use crate::files::blocking_files;
use crate::lock::{self, Approval, Lock, LockPath, PinnedComponent, drift};
use crate::reload::failure::ReloadFailure;
use crate::reload::journal::Quarantined;
use crate::replicas::replicated_sets::{ReplicatedSetName, ReplicatedSets};

/// The code of an approval that failed because this process cannot write the lock.
pub const LOCK_UNWRITABLE: &str = "lock::unwritable";

/// How long other replicas accept an approval: files are copied to all of them within a week.
const APPROVED_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

impl Reloader {
    /// Pins the component quarantined under this name, and notifies other replicas. Does nothing if
    /// the server is not locked and nothing is quarantined, or if another process has pinned the
    /// component meanwhile.
    pub fn approve(&mut self, approval: &Approval) -> Result<(), ReloadFailure> {
        let Some(path) = self.setup.lock.clone() else { return Ok(()) };
        if !self.setup.locked && self.setup.current.journal.quarantined().is_empty() {
            return Ok(());
        }
        let locked = read_lock(&path)?;
        self.examine(approval, &locked)?;
        let Some((component, pinned)) = self.quarantined_as(&approval.name) else {
            let mut serving = Lock::of(&self.setup.current.snapshot());
            let as_pinned = |name: &str| serving.components.get(name) == locked.components.get(name);
            let component = serving.component_named(&approval.name).filter(|name| as_pinned(name)).map(str::to_owned);
            return match component.and_then(|component| serving.components.remove_entry(&component)) {
                // Other replicas may have missed the first notification.
                Some((component, pinned)) => self.announce_approved(&component, &pinned),
                None => Err(ReloadFailure::saying(&format!("nothing called {:?} is quarantined", approval.name))),
            };
        };
        let checked = approval.check(&component, &pinned.digest);
        let checked =
            checked.and_then(|()| approval.check_signers(&component, locked.components.get(&component), &pinned));
        checked.map_err(|problem| ReloadFailure::saying(&problem))?;
        self.pin(&path, locked, &component, &pinned)?;
        self.announce_approved(&component, &pinned)
    }

    /// Loads a withheld component, as its approval would, and notes how its tools and grants
    /// differ. It stays quarantined.
    pub fn read(&mut self, seen: &Approval) -> Result<(), ReloadFailure> {
        let gone = || ReloadFailure::saying(&format!("nothing called {:?} is quarantined", seen.name));
        let path = self.setup.lock.clone().ok_or_else(gone)?;
        let locked = read_lock(&path)?;
        self.examine(seen, &locked)?;
        let (component, pinned) = self.quarantined_as(&seen.name).ok_or_else(gone)?;
        seen.check(&component, &pinned.digest).map_err(|problem| ReloadFailure::saying(&problem))?;
        let digest = pinned.digest.clone();
        let now = Lock { components: [(component.clone(), pinned)].into() };
        let drift = drift(&locked, &now).into_iter().find(|drift| drift.component == component).ok_or_else(gone)?;
        // All components that were read share one bound on memory.
        let others = self.setup.current.journal.quarantined().into_iter().filter(|held| held.component != component);
        let taken: usize = others.filter_map(|held| Some(held.read?.texts_bytes())).sum();
        let details = drift.details.within(&mut DETAILS_BYTES_MAX.saturating_sub(taken));
        let is_held = self.setup.current.journal.was_read(&component, &digest, details);
        is_held.then_some(()).ok_or_else(gone)
    }

    /// Records the approval, and updates the lock.
    fn pin(
        &self,
        path: &LockPath,
        mut locked: Lock,
        component: &str,
        pinned: &PinnedComponent,
    ) -> Result<(), ReloadFailure> {
        self.note(Event::ComponentApproved(ComponentApproved { name: component, digest: &pinned.digest }))?;
        locked.components.insert(component.to_owned(), pinned.clone());
        let own = path.clone();
        let written = blocking_files::run(path, move |_| lock::write(&own, &locked).map_err(|error| error.to_string()));
        let written = written.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|problem| ReloadFailure::coded(LOCK_UNWRITABLE, &problem))
    }

    /// Notifies other replicas that this component was approved as it is pinned now.
    fn announce_approved(&self, component: &str, pinned: &PinnedComponent) -> Result<(), ReloadFailure> {
        let Some(sets) = &self.setup.services.replicated_sets else { return Ok(()) };
        let form = lock::text_of(component, pinned);
        // The bytes are sent last: a replica that sees them also finds the form.
        for parts in [&[component, &form][..], &[component, "bytes", &pinned.digest]] {
            let problem = match sets.post_waiting(ReplicatedSetName::Approvals, parts, APPROVED_FOR) {
                Ok(true) => continue,
                Ok(false) => "there is no room for more approvals".to_owned(),
                Err(away) => away.to_string(),
            };
            return Err(ReloadFailure::saying(&format!(
                "{component} is approved here, and other replicas were not notified: {problem}"
            )));
        }
        Ok(())
    }

    /// Pins what is quarantined here and was approved by another replica: with the same bytes,
    /// tools and grants. True if there was any.
    pub fn approve_as_elsewhere(&mut self) -> bool {
        let (Some(sets), Some(path)) = (self.setup.services.replicated_sets.clone(), self.setup.lock.clone()) else {
            return false;
        };
        let mut pinned_any = false;
        for held in self.setup.current.journal.quarantined() {
            let seen = (held.digest.clone(), sets.version(ReplicatedSetName::Approvals));
            if self.unapproved.get(&held.component) == Some(&seen)
                || !sets.has(ReplicatedSetName::Approvals, &[&held.component, "bytes", &held.digest])
            {
                continue;
            }
            match self.approve_one_as_elsewhere(&held, &sets, &path) {
                Ok(true) => {
                    tracing::info!("{} was approved at another replica, and is pinned here as well", held.component);
                    pinned_any = true;
                    continue;
                }
                Ok(false) => tracing::warn!(
                    "{}: these bytes were approved at another replica, with other tools or grants than here",
                    held.component
                ),
                Err(failed) => tracing::error!(
                    "{} was approved at another replica, and not here: {}",
                    held.component,
                    failed.summary
                ),
            }
            self.unapproved.insert(held.component, seen);
        }
        pinned_any
    }

    fn approve_one_as_elsewhere(
        &mut self,
        held: &Quarantined,
        sets: &ReplicatedSets,
        path: &LockPath,
    ) -> Result<bool, ReloadFailure> {
        let locked = read_lock(path)?;
        let seen = held.digest.parse().map_err(|problem: String| ReloadFailure::saying(&problem))?;
        // The person who approved it there allowed it.
        let approval = Approval { name: held.component.clone(), digest: Some(seen), allow_signer_change: true };
        self.examine(&approval, &locked)?;
        let Some((component, pinned)) = self.quarantined_as(&held.component) else { return Ok(false) };
        let form = lock::text_of(&component, &pinned);
        if pinned.digest != held.digest || !sets.has(ReplicatedSetName::Approvals, &[&component, &form]) {
            return Ok(false);
        }
        self.pin(path, locked, &component, &pinned).map(|()| true)
    }

    /// Loads an approved component that was withheld, so that the lock can pin its tools as well.
    fn examine(&mut self, approval: &Approval, locked: &Lock) -> Result<(), ReloadFailure> {
        let old = self.setup.current.snapshot();
        let named = Lock::of(&old).component_named(&approval.name).map(str::to_owned);
        let is_named = |held: &&Withheld| held.name == approval.name || named.as_ref() == Some(&held.name);
        let (Some(held), Some(manifest)) = (self.withheld.iter().find(is_named), &self.withheld_of) else {
            return Ok(());
        };
        approval.check(&held.name, &held.digest).map_err(|problem| ReloadFailure::saying(&problem))?;
        let mut pinned = locked.pins();
        let source = pinned.remove(&held.name).map(|pin| pin.source).unwrap_or_default();
        pinned.insert(held.name.clone(), Pin { digest: held.digest.clone(), source });
        let earlier = [Arc::clone(&old)];
        let generation = old.tools().generation() + 1;
        let tolerance = Tolerance::Those(old.left_out().iter().map(|component| component.name.clone()).collect());
        let pinned = Some(pinned);
        let basis = Basis { generation, earlier: &earlier, fresh: false, pinned, approved: Some(held), tolerance };
        let folder = folder_of(&self.setup.manifest_path);
        let Built { catalog, problems, .. } =
            self.setup.builder.build(&self.setup.services, manifest, &folder, &basis, &log_slow);
        let why = problems.iter().find(|problem| problem.severity() == Severity::Error);
        let catalog =
            catalog.ok_or_else(|| ReloadFailure::saying(why.map_or("it cannot be loaded", |why| why.message())))?;
        self.proposed = Some(Arc::new(catalog));
        Ok(())
    }

    /// The component quarantined under this name, or the one of a tool with this name.
    fn quarantined_as(&self, name: &str) -> Option<(String, PinnedComponent)> {
        let mut now = Lock::of(self.proposed.as_ref()?);
        let component = now.component_named(name)?.to_owned();
        let quarantined = self.setup.current.journal.quarantined();
        let is_held = quarantined.iter().any(|held| held.component == component);
        is_held.then(|| now.components.remove_entry(&component)).flatten()
    }
}
