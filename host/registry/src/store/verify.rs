//! Verifying a whole store.
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use toolcell_policy::Digest;

use super::index::{is_component, subject_of};
use super::{MANIFEST_LENGTH_MAX, Store, files};
use crate::document::{Descriptor, Document, Manifest, component_layer, manifest_of_index};
use crate::error::StoreError;

/// Most faults that are listed; a person reads the first.
const FAULTS_MAX: usize = 1_000;

/// Something wrong in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The digest of the faulty blob; none for a file of another name.
    pub digest: Option<Digest>,
    /// One sentence.
    pub text: String,
    /// Advice where nothing else can be mended before: without its index, no store is pulled to.
    pub hint: Option<&'static str>,
}

impl Store {
    /// Reads everything, and lists each fault, at most a thousand.
    ///
    /// # Errors
    /// [`StoreError::Files`] where folders cannot be read. A broken `index.json` is a fault.
    pub fn verify(&self) -> Result<Vec<Fault>, StoreError> {
        let mut faults = Vec::new();
        self.verify_blobs(&mut faults)?;
        match self.entries() {
            Ok(entries) => {
                let mut seen = BTreeSet::new();
                let mut read = ReadParts::default();
                for entry in entries.iter().filter(|entry| seen.insert(entry.digest.clone())) {
                    faults.extend(self.verify_entry(entry, &mut read));
                }
            }
            Err(error @ StoreError::Files { .. }) => return Err(error),
            Err(error) => faults.push(Fault { digest: None, text: error.to_string(), hint: error.hint() }),
        }
        faults.truncate(FAULTS_MAX);
        Ok(faults)
    }

    /// Verifies that every blob matches its name.
    fn verify_blobs(&self, faults: &mut Vec<Fault>) -> Result<(), StoreError> {
        let folder = self.blobs_folder();
        let failed = |source| StoreError::files("reading", &folder)(source);
        let listed = match std::fs::read_dir(&folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in listed {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with(files::UNFINISHED) {
                continue;
            }
            let digest = Digest::parse(&format!("sha256:{name}")).ok();
            let text = match (&digest, files::digest(&path)) {
                (Some(digest), Ok((found, _))) if found == *digest => continue,
                (Some(_), Ok(_)) => StoreError::Changed { path }.to_string(),
                (Some(_), Err(source)) => StoreError::Files { step: "reading", path, source }.to_string(),
                (None, _) => format!("{} is not a blob", path.display()),
            };
            if faults.len() < FAULTS_MAX {
                faults.push(Fault { digest, text, hint: None });
            }
        }
        Ok(())
    }

    /// Verifies that every part of an entry exists and has the size in its manifest.
    fn verify_entry(&self, entry: &Descriptor, read: &mut ReadParts) -> Vec<Fault> {
        let fault = |text: String| vec![Fault { digest: Some(entry.digest.clone()), text, hint: None }];
        match self.parts_of(entry, read) {
            Ok(parts) => parts.iter().flat_map(|(digest, size)| self.verify_part(digest, *size)).collect(),
            Err(error) => fault(format!("{} is not whole: {error}", entry.digest)),
        }
    }

    fn verify_part(&self, digest: &Digest, size: u64) -> Option<Fault> {
        let path = self.blob_path(digest);
        let text = match files::open_own(&path).and_then(|file| Ok(file.metadata()?.len())) {
            Ok(length) if length == size => return None,
            Ok(_) => StoreError::Size { path, said: size }.to_string(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                StoreError::Missing(digest.clone()).to_string()
            }
            Err(source) => StoreError::Files { step: "reading", path, source }.to_string(),
        };
        Some(Fault { digest: Some(digest.clone()), text, hint: None })
    }

    /// All parts of an entry: of an index, only its component.
    pub(super) fn parts_of(&self, entry: &Descriptor, read: &mut ReadParts) -> Result<Rc<[Part]>, StoreError> {
        if let Some(parts) = read.parts.get(&entry.digest) {
            return Ok(Rc::clone(parts));
        }
        let wrong = |problem| super::not_understood(&entry.digest, problem);
        let bytes = self.read_blob(&entry.digest, None, MANIFEST_LENGTH_MAX)?;
        let parts: Rc<[Part]> = match Document::parse(&bytes).map_err(wrong)? {
            Document::Manifest(manifest) => {
                if is_component(entry) && subject_of(entry).is_none() {
                    component_layer(&entry.digest, &manifest).map_err(|error| wrong(error.to_string()))?;
                }
                parts(&manifest)
            }
            Document::Index(index) => {
                let chosen = manifest_of_index(&entry.digest, &index).map_err(|error| wrong(error.to_string()))?;
                let of_chosen = match read.parts.get(&chosen.digest) {
                    Some(parts) => Rc::clone(parts),
                    None => {
                        let bytes = self.read_blob(&chosen.digest, Some(chosen.size), MANIFEST_LENGTH_MAX)?;
                        let parts = parts(&Manifest::parse(&bytes).map_err(wrong)?);
                        read.parts.insert(chosen.digest.clone(), Rc::clone(&parts));
                        parts
                    }
                };
                std::iter::once((chosen.digest.clone(), chosen.size)).chain(of_chosen.iter().cloned()).collect()
            }
        };
        read.parts.insert(entry.digest.clone(), Rc::clone(&parts));
        Ok(parts)
    }
}

/// A digest and a size.
pub(super) type Part = (Digest, u64);

/// Parts of the documents read so far: each document is read once, even if many entries name it.
#[derive(Default)]
pub(super) struct ReadParts {
    parts: BTreeMap<Digest, Rc<[Part]>>,
}

fn parts(manifest: &Manifest) -> Rc<[Part]> {
    manifest.parts().map(|part| (part.digest.clone(), part.size)).collect()
}
