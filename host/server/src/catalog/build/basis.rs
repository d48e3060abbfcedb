//! What a generation takes over from those before it. Must not hold: how anything is made anew.
//!
//! Taken over whole is a component whose bytes and policy are the same. Of others the compiled code is, where the bytes are
//! the same and were loaded under the same limits, since compiling is what costs; and the places and allowances of each tool
//! whose limits on them are the same, so that a reload is no way around them.
use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Limits};
use toolcell_sandbox::ToolComponent;

use super::super::meters::Meters;
use super::super::queue::Admission;
use super::super::{CallTarget, Catalog, LoadedComponent};
use crate::stamp::Stamps;

/// What a build begins with.
pub struct Basis<'a> {
    /// The number of the generation that is built.
    pub generation: u64,
    /// Earlier catalogs, the one that serves first.
    pub earlier: &'a [Arc<Catalog>],
    /// What components may reach (folders, secrets, variables) is looked at anew, though the manifest says the same.
    pub fresh: bool,
    /// Of each component the digest that the lock pins, where nothing else is even read.
    pub pinned: Option<BTreeMap<String, String>>,
    /// Bytes that were withheld and are approved now: they are taken instead of the files.
    pub approved: Option<&'a Withheld>,
}

/// A component that the lock does not have so: its bytes, which nothing has looked into.
#[derive(Clone)]
pub struct Withheld {
    /// Its name in the manifest.
    pub name: String,
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// Themselves: what is approved is what was seen, whatever the file holds by then.
    pub bytes: Arc<[u8]>,
}

impl<'a> Basis<'a> {
    /// Nothing: the first generation.
    pub fn none() -> Self {
        Self { generation: 1, earlier: &[], fresh: true, pinned: None, approved: None }
    }

    /// The first generation, of nothing but what is pinned where anything is.
    pub fn of_pinned(pinned: Option<BTreeMap<String, String>>) -> Self {
        Self { pinned, ..Self::none() }
    }

    /// True if nothing of these bytes may be looked at.
    pub(super) fn withholds(&self, policy: &ComponentPolicy, digest: &str) -> bool {
        let pinned = self.pinned.as_ref().map(|pinned| pinned.get(policy.name()).map(String::as_str));
        pinned.is_some_and(|pinned| pinned != Some(digest))
    }

    /// The bytes that are approved for this component.
    pub(super) fn approved(&self, policy: &ComponentPolicy) -> Option<&'a Withheld> {
        self.approved.filter(|approved| approved.name == policy.name())
    }

    /// The catalog that serves, and this component in it.
    pub(super) fn serving(&self, component: &str) -> Option<(&'a Catalog, &'a Arc<LoadedComponent>)> {
        let catalog = self.earlier.first()?;
        Some((catalog.as_ref(), catalog.component(component)?))
    }

    /// Whether an earlier generation serves meanwhile.
    pub(super) fn is_side_files_calls(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// A component that can be taken over as it is.
    pub(super) fn unchanged(
        &self,
        policy: &ComponentPolicy,
        (digest, policy_digest): (&str, &str),
        side_files: &Stamps,
    ) -> Option<(&'a Catalog, &'a Arc<LoadedComponent>)> {
        if self.fresh && !policy.grants().is_sealed() {
            return None;
        }
        self.earlier.iter().find_map(|catalog| {
            let loaded = catalog.component(policy.name())?;
            let same = loaded.digest == digest
                && loaded.policy_digest == policy_digest
                && loaded.policy.source() == policy.source()
                && loaded.side_files == *side_files;
            same.then_some((catalog.as_ref(), loaded))
        })
    }

    /// Code that was compiled from the same bytes, under any name.
    pub(super) fn compiled(&self, policy: &ComponentPolicy, digest: &str) -> Option<Arc<ToolComponent>> {
        let mut loaded = self.earlier.iter().flat_map(|catalog| catalog.components());
        let same = loaded.find(|loaded| loaded.digest == digest && loaded.policy.load() == policy.load())?;
        Some(Arc::clone(&same.component))
    }

    /// The places and allowances of a tool, where it had as many.
    pub(super) fn admission(&self, policy: &ComponentPolicy, tool: &str, limits: &Limits) -> Option<Arc<Admission>> {
        let target = self.target(policy.name(), tool).filter(|target| target.admission.suits(limits))?;
        Some(Arc::clone(&target.admission))
    }

    /// What is counted of a tool.
    pub(super) fn meters(&self, component: &str, tool: &str) -> Option<&'a Arc<Meters>> {
        self.target(component, tool).map(|target| &target.meters)
    }

    /// The component of this name in the catalog that serves.
    pub(super) fn loaded(&self, component: &str) -> Option<&'a Arc<LoadedComponent>> {
        self.earlier.first().and_then(|catalog| catalog.component(component))
    }

    fn target(&self, component: &str, tool: &str) -> Option<&'a Arc<CallTarget>> {
        self.targets().find(|target| target.component.name() == component && target.name == tool)
    }

    /// The tools of the catalog that serves.
    fn targets(&self) -> impl Iterator<Item = &'a Arc<CallTarget>> {
        self.earlier.first().into_iter().flat_map(|catalog| &catalog.targets)
    }
}
