//! `index.json` of a store: the components it has, their names, and what is attached to them.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolcell_policy::Digest;

use super::{STORE_ENTRIES_MAX, Store, files};
use crate::document::{Descriptor, OCI_INDEX, problem, written};
use crate::error::StoreError;
use crate::length;

/// Annotation with a component's name (image specification 1.1, "Pre-Defined Annotation Keys").
pub(super) const NAME: &str = "org.opencontainers.image.ref.name";

/// Annotation with the digest that an entry is attached to. cosign 2 names no subject in manifests.
pub(super) const SUBJECT: &str = "dev.toolcell.subject";

/// Annotation with the repository that an attached artifact was pulled from, `registry/repository`.
/// One that was imported has none.
pub(super) const REPOSITORY: &str = "dev.toolcell.repository";

/// Largest `index.json`, in bytes: its most entries, with room for other tools' annotations.
pub(super) const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Most attached artifacts of one component that are kept from one repository: twice those that one
/// pull examines.
pub(super) const ATTACHED_MAX: usize = 128;

/// Most names of one component: the same one may come from a few registries and mirrors.
pub(super) const NAMES_MAX: usize = 16;

/// The file as it is written.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexFile {
    schema_version: u8,
    media_type: Option<String>,
    pub(super) manifests: Vec<Descriptor>,
}

impl IndexFile {
    pub(super) fn new(manifests: Vec<Descriptor>) -> Self {
        Self { schema_version: 2, media_type: Some(OCI_INDEX.to_owned()), manifests }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Descriptor>, String> {
        let index: Self = serde_json::from_slice(bytes).map_err(problem)?;
        if index.schema_version != 2 {
            return Err(format!("its version is {}, and only 2 is known", index.schema_version));
        }
        if index.manifests.len() > STORE_ENTRIES_MAX {
            return Err(format!("it has more than {STORE_ENTRIES_MAX} entries"));
        }
        Ok(index.manifests)
    }
}

/// The digest that an entry is attached to.
pub(super) fn subject_of(entry: &Descriptor) -> Option<Digest> {
    Digest::parse(entry.annotations.get(SUBJECT)?).ok()
}

/// True if an entry is a component.
pub(super) fn is_component(entry: &Descriptor) -> bool {
    !entry.annotations.contains_key(SUBJECT)
}

impl Store {
    pub(super) fn index_path(&self) -> PathBuf {
        self.root().join("index.json")
    }

    /// All entries.
    pub(super) fn entries(&self) -> Result<Vec<Descriptor>, StoreError> {
        let path = self.index_path();
        let bytes = match files::read(&path, INDEX_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::files("reading", path)(error)),
        };
        IndexFile::parse(&bytes).map_err(|problem| StoreError::Index { path, problem })
    }

    /// Changes the entries under the lock of the index.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Vec<Descriptor>) -> T) -> Result<T, StoreError> {
        self.prepare()?;
        let path = self.root().join("index.lock");
        let _lock = files::lock(&path, files::LockKind::Exclusive, "changes the store")?;
        let mut entries = self.entries()?;
        let before = entries.clone();
        let result = change(&mut entries);
        if entries.len() > STORE_ENTRIES_MAX {
            return Err(StoreError::Full(STORE_ENTRIES_MAX));
        }
        if entries != before || !self.index_path().exists() {
            let bytes = written(&IndexFile::new(entries));
            // A longer one could not be read again.
            if length(&bytes) > INDEX_BYTES_MAX {
                return Err(StoreError::FullIndex(INDEX_BYTES_MAX));
            }
            files::write(&self.index_path(), &bytes)?;
        }
        Ok(result)
    }

    /// Records components under their names, up to [`NAMES_MAX`] for each, and their attached
    /// artifacts. The newest artifacts come first; the oldest of a repository are dropped if it has
    /// too many.
    pub(crate) fn record(&self, components: Vec<Descriptor>, attached: Vec<Descriptor>) -> Result<(), StoreError> {
        self.change(|entries| {
            add_named(entries, components);
            entries.splice(0..0, attached);
            let mut seen = BTreeSet::new();
            let mut counts = BTreeMap::<(Digest, Option<String>), usize>::new();
            entries.retain(|entry| {
                let Some(subject) = subject_of(entry) else { return true };
                let repository = entry.annotations.get(REPOSITORY).cloned();
                let place = (subject, repository);
                let count = counts.entry(place.clone()).or_default();
                let is_kept = seen.insert((entry.digest.clone(), place)) && *count < ATTACHED_MAX;
                *count = count.saturating_add(usize::from(is_kept));
                is_kept
            });
        })
    }
}

/// Adds components that are not there under their name yet. Names beyond the bound are left out,
/// since they are only for display.
fn add_named(entries: &mut Vec<Descriptor>, components: Vec<Descriptor>) {
    let mut names = BTreeMap::<Digest, BTreeSet<Option<String>>>::new();
    let name = |entry: &Descriptor| entry.annotations.get(NAME).cloned();
    for entry in entries.iter().filter(|entry| is_component(entry)) {
        names.entry(entry.digest.clone()).or_default().insert(name(entry));
    }
    entries.extend(components.into_iter().filter(|component| {
        let names = names.entry(component.digest.clone()).or_default();
        names.len() < NAMES_MAX && names.insert(name(component))
    }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_index_that_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let entry = |n: usize, note: usize| {
            let digest = crate::digest_of(n.to_string().as_bytes());
            let mut entry = Descriptor::named(&digest, OCI_INDEX, 1);
            entry.annotations.insert("note".to_owned(), "x".repeat(note));
            entry
        };
        store.record(vec![entry(0, 10)], Vec::new()).unwrap();
        let before = std::fs::read(store.index_path()).unwrap();
        let many: Vec<_> = (1..=65).map(|n| entry(n, 256 << 10)).collect();
        let full = store.record(many, Vec::new()).unwrap_err();
        assert!(matches!(full, StoreError::FullIndex(INDEX_BYTES_MAX)), "{full}");
        assert_eq!(std::fs::read(store.index_path()).unwrap(), before);
        assert_eq!(store.entries().unwrap().len(), 1);
    }
}
