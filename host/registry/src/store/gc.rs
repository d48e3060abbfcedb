//! Removing what is not needed.
use std::collections::BTreeSet;
use std::path::Path;

use toolcell_policy::Digest;

use super::index::{is_component, subject_of};
use super::verify::ReadParts;
use super::{Store, files};
use crate::document::Descriptor;
use crate::error::StoreError;

/// Things that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Components, each counted once for all its names.
    pub components: usize,
    /// Files of blobs and of unfinished downloads.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes all other components, the artifacts attached only to those, and unfinished
    /// downloads.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another process adds to the store: nothing is removed then.
    pub fn gc(&self, keep: &BTreeSet<Digest>) -> Result<Removed, StoreError> {
        self.prepare()?;
        let alone = files::try_lock(&self.pulling_lock(), files::LockKind::Exclusive)?;
        let _alone = alone.ok_or(StoreError::Busy("is adding to the store"))?;
        let mut removed = Removed::default();
        // If a part cannot be read, what it refers to is unknown and removed. The component was
        // unreadable before.
        let subjects = self.with_chosen(keep)?;
        let needed = self.change(|entries| {
            let gone: BTreeSet<_> = entries.iter().filter(|entry| is_component(entry)).map(|e| &e.digest).collect();
            removed.components = gone.into_iter().filter(|digest| !keep.contains(digest)).count();
            entries.retain(|entry| match subject_of(entry) {
                Some(subject) => subjects.contains(&subject),
                None => keep.contains(&entry.digest),
            });
            self.needed(entries)
        })?;
        let is_needed = |name: &str| Digest::parse(&format!("sha256:{name}")).is_ok_and(|d| needed.contains(&d));
        remove(&self.blobs_folder(), is_needed, &mut removed)?;
        remove(&self.partial_folder(), |_| false, &mut removed)?;
        Ok(removed)
    }

    /// These digests, and those of the components that indexes among them name.
    fn with_chosen(&self, keep: &BTreeSet<Digest>) -> Result<BTreeSet<Digest>, StoreError> {
        let chosen = keep.iter().filter_map(|digest| Some(self.find(digest).ok()?.digest));
        Ok(chosen.chain(keep.iter().cloned()).collect())
    }

    /// Digests of all blobs that the entries need.
    fn needed(&self, entries: &[Descriptor]) -> BTreeSet<Digest> {
        let mut needed = BTreeSet::new();
        let mut read = ReadParts::default();
        let mut seen = BTreeSet::new();
        for entry in entries.iter().filter(|entry| seen.insert(&entry.digest)) {
            needed.insert(entry.digest.clone());
            let parts = self.parts_of(entry, &mut read).unwrap_or_default();
            needed.extend(parts.iter().map(|(digest, _)| digest.clone()));
        }
        needed
    }
}

fn remove(folder: &Path, is_needed: impl Fn(&str) -> bool, removed: &mut Removed) -> Result<(), StoreError> {
    let failed = |source| StoreError::files("reading", folder)(source);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if is_needed(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let bytes = entry.metadata().map_or(0, |about| about.len());
        std::fs::remove_file(entry.path()).map_err(StoreError::files("removing", entry.path()))?;
        removed.files = removed.files.saturating_add(1);
        removed.bytes = removed.bytes.saturating_add(bytes);
    }
    Ok(())
}
