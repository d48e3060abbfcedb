//! Earlier generations that a new one reuses.
//!
//! A component with unchanged bytes and policy is reused as it is. If only the bytes and the load
//! limits are unchanged, its compiled code is reused, since compiling is expensive. Each tool whose
//! queue limits are unchanged keeps its call slots and allowances, so that a reload cannot be used
//! to reset them.
use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Limits};
use toolcell_sandbox::HeldComponent;

use super::super::entry::targets;
use super::super::meters::Meters;
use super::super::queue::Admission;
use super::super::{CallTarget, Catalog, LoadedComponent, Tolerance};
use super::code::Code;
use crate::fetching::trust::Signed;
use crate::files::file_stamp::Stamps;

/// Input of a build besides the manifest.
pub struct Basis<'a> {
    /// The number of the generation that is built.
    pub generation: u64,
    /// Earlier catalogs, the current one first.
    pub earlier: &'a [Arc<Catalog>],
    /// True to prepare again what components may reach (folders, secrets, variables), even if the
    /// manifest is unchanged.
    pub fresh: bool,
    /// Bytes that the lock pins, by component. Files with another digest are not parsed.
    pub pinned: Option<BTreeMap<String, Pin>>,
    /// Withheld bytes that have now been approved. They are used instead of the file.
    pub approved: Option<&'a Withheld>,
    /// Components that may be broken. Those are left out.
    pub tolerance: Tolerance,
}

/// The bytes of a component that a lock pins.
#[derive(Clone, Debug)]
pub struct Pin {
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// The source that they had, as the manifest wrote it.
    pub source: String,
}

/// A component whose bytes differ from the lock. Nothing has parsed them.
#[derive(Clone)]
pub struct Withheld {
    /// Its name in the manifest.
    pub name: String,
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// The bytes themselves: what is approved is what was shown, even if the file has changed
    /// since.
    pub bytes: Arc<[u8]>,
    /// Who signed them.
    pub signed: Signed,
}

impl<'a> Basis<'a> {
    /// For the first generation: nothing to reuse.
    pub fn none() -> Self {
        Self { generation: 1, earlier: &[], fresh: true, pinned: None, approved: None, tolerance: Tolerance::None }
    }

    /// True if these bytes must not be parsed.
    pub(super) fn withholds(&self, policy: &ComponentPolicy, digest: &str) -> bool {
        let pinned = self.pinned.as_ref().map(|pinned| pinned.get(policy.name()).map(|pin| pin.digest.as_str()));
        pinned.is_some_and(|pinned| pinned != Some(digest))
    }

    /// The pinned bytes to start with in place of other ones: a start serves what is known to work,
    /// and no earlier generation has the component.
    pub(super) fn start_with(&self, policy: &ComponentPolicy) -> Option<&Pin> {
        if self.tolerance.is_none() || self.serves_meanwhile() {
            return None;
        }
        self.pinned.as_ref()?.get(policy.name())
    }

    /// Approved bytes of this component.
    pub(super) fn approved(&self, policy: &ComponentPolicy) -> Option<&'a Withheld> {
        self.approved.filter(|approved| approved.name == policy.name())
    }

    /// The current catalog, and this component in it.
    pub(super) fn serving(&self, component: &str) -> Option<(&'a Catalog, &'a Arc<LoadedComponent>)> {
        let catalog = self.earlier.first()?;
        Some((catalog.as_ref(), catalog.component(component)?))
    }

    /// True if an earlier generation serves during the build.
    pub(super) fn serves_meanwhile(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// A component that can be reused whole.
    pub(super) fn unchanged(
        &self,
        policy: &ComponentPolicy,
        digest: &str,
        read: &Code,
        policy_digest: &str,
        side_files: &Stamps,
    ) -> Option<(&'a Catalog, &'a Arc<LoadedComponent>)> {
        if self.fresh && !policy.grants().is_sealed() {
            return None;
        }
        self.earlier.iter().find_map(|catalog| {
            let loaded = catalog.component(policy.name())?;
            let same = loaded.digest == digest
                && loaded.signed == read.signed
                && loaded.dev_source == read.dev_source
                && loaded.policy_digest == policy_digest
                && loaded.policy.source() == policy.source()
                && loaded.side_files == *side_files;
            same.then_some((catalog.as_ref(), loaded))
        })
    }

    /// Code compiled from these bytes with these load limits, for any component.
    pub(super) fn compiled(&self, policy: &ComponentPolicy, digest: &str) -> Option<Arc<HeldComponent>> {
        let mut loaded = self.earlier.iter().flat_map(|catalog| catalog.components());
        let same = loaded.find(|loaded| loaded.digest == digest && loaded.policy.load() == policy.load())?;
        Some(Arc::clone(&same.component))
    }

    /// Slots and allowances of a tool, if the limits on them are unchanged.
    pub(super) fn admission(&self, policy: &ComponentPolicy, tool: &str, limits: &Limits) -> Option<Arc<Admission>> {
        let target = self.target(policy.name(), tool).filter(|target| target.admission.suits(limits))?;
        Some(Arc::clone(&target.admission))
    }

    /// Meters of a tool in the current catalog.
    pub(super) fn meters(&self, component: &str, tool: &str) -> Option<&'a Arc<Meters>> {
        self.target(component, tool).map(|target| &target.meters)
    }

    /// The component of this name in the current catalog.
    pub(super) fn loaded(&self, component: &str) -> Option<&'a Arc<LoadedComponent>> {
        self.earlier.first().and_then(|catalog| catalog.component(component))
    }

    fn target(&self, component: &str, tool: &str) -> Option<&'a Arc<CallTarget>> {
        targets(&self.earlier.first()?.entries)
            .find(|target| target.component.name() == component && target.name == tool)
    }
}
