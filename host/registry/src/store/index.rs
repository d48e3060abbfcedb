//! `index.json` of a store: the components it has, their names, and what is attached to them. Must
//! not hold: their bytes.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolcell_policy::Digest;

use super::{STORE_ENTRIES_MAX, Store, files};
use crate::document::{Descriptor, OCI_INDEX, written};
use crate::error::StoreError;

/// Annotation with a component's name (image specification 1.1, "Pre-Defined Annotation Keys").
pub(super) const NAME: &str = "org.opencontainers.image.ref.name";

/// Annotation with the digest that an entry is attached to. cosign 2 names no subject in manifests.
pub(super) const SUBJECT: &str = "dev.toolcell.subject";

/// Largest `index.json`, in bytes: its most entries, with room for other tools' annotations.
pub(super) const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Most attached artifacts of one component that are kept: twice those that one pull looks at.
pub(super) const ATTACHED_MAX: usize = 128;

/// The file as it is written.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexFile {
    schema_version: u8,
    #[serde(default)]
    media_type: Option<String>,
    pub(super) manifests: Vec<Descriptor>,
}

impl IndexFile {
    pub(super) fn new(manifests: Vec<Descriptor>) -> Self {
        Self { schema_version: 2, media_type: Some(OCI_INDEX.to_owned()), manifests }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Descriptor>, String> {
        let index: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
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

    /// Changes the entries, while no other process does.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Vec<Descriptor>) -> T) -> Result<T, StoreError> {
        self.prepare()?;
        let path = self.root().join("index.lock");
        let _lock = files::lock(&path, files::Kind::Exclusive, "changes the store")?;
        let mut entries = self.entries()?;
        let before = entries.clone();
        let result = change(&mut entries);
        if entries.len() > STORE_ENTRIES_MAX {
            return Err(StoreError::Full(STORE_ENTRIES_MAX));
        }
        if entries != before || !self.index_path().exists() {
            files::write(&self.index_path(), &written(&IndexFile::new(entries)))?;
        }
        Ok(result)
    }

    /// Records components under their names, and what is attached to them. The newest of these come
    /// first; the oldest go where there are too many.
    pub(crate) fn record(&self, components: Vec<Descriptor>, attached: Vec<Descriptor>) -> Result<(), StoreError> {
        self.change(|entries| {
            let key = |entry: &Descriptor| (entry.digest.clone(), entry.annotations.get(NAME).cloned());
            let mut known: BTreeSet<_> = entries.iter().filter(|entry| is_component(entry)).map(key).collect();
            entries.extend(components.into_iter().filter(|component| known.insert(key(component))));
            entries.splice(0..0, attached);
            let mut seen = BTreeSet::new();
            let mut counts = BTreeMap::<Digest, usize>::new();
            entries.retain(|entry| {
                let Some(subject) = subject_of(entry) else { return true };
                let count = counts.entry(subject.clone()).or_default();
                let is_kept = seen.insert((entry.digest.clone(), subject)) && *count < ATTACHED_MAX;
                *count = count.saturating_add(usize::from(is_kept));
                is_kept
            });
        })
    }
}
