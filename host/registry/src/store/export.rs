//! Components in one archive, which is an image layout itself.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use toolcell_policy::Digest;

use super::index::{IndexFile, REPOSITORY, is_component, subject_of};
use super::verify::ReadParts;
use super::{Store, layout_text, tar};
use crate::document::{Descriptor, written};
use crate::error::StoreError;
use crate::length;

impl Store {
    /// Writes these components, and what is attached to them, as one tar archive that is an OCI
    /// image layout. The same store gives the same bytes.
    ///
    /// # Errors
    /// [`StoreError::Missing`] for one that is not in the store, those of reading it, and
    /// [`StoreError::ArchiveFile`].
    pub fn export(&self, digests: &[Digest], mut archive: impl Write) -> Result<(), StoreError> {
        let _adding = self.adding()?;
        let (entries, parts) = self.exported(digests)?;
        put(&mut archive, "oci-layout", &layout_text())?;
        put(&mut archive, "index.json", &written(&IndexFile::new(entries)))?;
        for (digest, size) in parts {
            // Read as a whole, so that nothing is written that does not match its name.
            let bytes = self.read_blob(&digest, Some(size), size)?;
            put(&mut archive, &format!("blobs/sha256/{}", digest.hex()), &bytes)?;
        }
        let end = [0; 2 * tar::BLOCK];
        archive.write_all(&end).and_then(|()| archive.flush()).map_err(unwritten)
    }

    /// The entries of these components, and all their blobs with their sizes.
    fn exported(&self, digests: &[Digest]) -> Result<(Vec<Descriptor>, BTreeMap<Digest, u64>), StoreError> {
        let mut subjects: BTreeSet<Digest> = BTreeSet::new();
        for digest in digests {
            subjects.extend([digest.clone(), self.find(digest)?.digest]);
        }
        let mut entries = self.entries()?;
        entries.retain(|entry| match subject_of(entry) {
            Some(subject) => subjects.contains(&subject),
            None => is_component(entry) && digests.contains(&entry.digest),
        });
        for digest in digests {
            if !entries.iter().any(|entry| entry.digest == *digest) {
                return Err(StoreError::Missing(digest.clone()));
            }
        }
        for entry in &mut entries {
            // An importer would have to trust this claim.
            entry.annotations.remove(REPOSITORY);
        }
        entries.sort_by_key(|entry| (entry.digest.clone(), entry.annotations.clone()));
        entries.dedup();
        let mut parts = BTreeMap::new();
        let mut read = ReadParts::default();
        for entry in &entries {
            parts.insert(entry.digest.clone(), entry.size);
            parts.extend(self.parts_of(entry, &mut read)?.iter().cloned());
        }
        Ok((entries, parts))
    }
}

fn put(archive: &mut impl Write, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let size = length(bytes);
    let padding = vec![0; usize::try_from(tar::padding(size)).unwrap_or_default()];
    let mut write = || {
        archive.write_all(&tar::header(name, size))?;
        archive.write_all(bytes)?;
        archive.write_all(&padding)
    };
    write().map_err(unwritten)
}

fn unwritten(source: std::io::Error) -> StoreError {
    StoreError::ArchiveFile { step: "written", source }
}
