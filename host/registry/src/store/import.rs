//! Importing components from an archive that is an image layout, of this store or of another tool.
//!
//! Each blob is first written under a temporary name. It becomes a blob once its digest matches its
//! name, and an entry of the index needs it.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::rc::Rc;

use sha2::{Digest as _, Sha256};
use toolcell_policy::Digest;

use super::index::{INDEX_BYTES_MAX, IndexFile, NAME, SUBJECT, subject_of};
use super::tar::{refused, unread};
use super::{
    ATTACHED_BYTES_MAX, ATTACHED_LAYER_BYTES_MAX, MANIFEST_LENGTH_MAX, Store, attached_entry, component_entry, files,
    tar,
};
use crate::document::{CONFIG_BYTES_MAX, Descriptor, Document, Manifest, component_layer, manifest_of_index};
use crate::error::StoreError;
use crate::length;

/// Largest archive, in bytes: sixteen of the largest components.
pub const IMPORT_BYTES_MAX: u64 = 8 << 30;

/// Most files of an archive: a store's entries, each with a manifest, a config and a layer.
const FILES_MAX: usize = 3 * super::STORE_ENTRIES_MAX;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Longest name that the index may give a component, as long as a reference with a tag.
const NAME_CHARS_MAX: usize = 512;

/// The components of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Their digests, in the order of the archive's index.
    pub components: Vec<Digest>,
    /// Number of artifacts that are attached to them.
    pub attached: usize,
}

/// Blobs of an archive, each in a temporary file that is removed unless it becomes a blob.
#[derive(Default)]
struct Staged {
    blobs: BTreeMap<Digest, (PathBuf, u64)>,
}

/// What the index of an archive contains.
#[derive(Default)]
struct TakenIndex {
    components: Vec<Descriptor>,
    attached: Vec<Descriptor>,
    /// Attached artifacts with their subjects.
    seen: BTreeSet<(Digest, Digest)>,
    needed: BTreeSet<Digest>,
    read: BTreeMap<Digest, Rc<Sorted>>,
}

/// A parsed document.
enum Sorted {
    /// An index with one component.
    Index,
    /// A manifest.
    Manifest {
        /// The digest of its subject.
        subject: Option<Digest>,
        /// Its entry as an attached artifact, or why it is not one.
        as_attached: Result<Descriptor, String>,
        /// Why it is not a component.
        as_component: Result<(), String>,
    },
}

impl Drop for Staged {
    fn drop(&mut self) {
        for (path, _) in self.blobs.values() {
            // It may already be a blob.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Store {
    /// Adds the components of an archive, and what is attached to them. Either all of them are
    /// added, or the index does not change.
    ///
    /// # Errors
    /// [`StoreError::Archive`] says what is wrong with the archive, and [`StoreError::ArchiveFile`]
    /// why it cannot be read.
    pub fn import(&self, archive: impl Read) -> Result<Imported, StoreError> {
        self.prepare()?;
        let _adding = self.adding()?;
        let mut archive = archive.take(IMPORT_BYTES_MAX);
        let (staged, index) = self.stage(&mut archive)?;
        let index = index.ok_or_else(|| refused("it has no index.json".to_owned()))?;
        let entries = IndexFile::parse(&index)
            .map_err(|problem| refused(format!("its index.json is not understood: {problem}")))?;
        let mut taken = TakenIndex::default();
        for entry in &entries {
            staged.take(entry, &mut taken)?;
        }
        let TakenIndex { components, attached, needed, .. } = taken;
        self.publish(&staged, &needed)?;
        let mut seen = BTreeSet::new();
        let digests = components.iter().map(|component| component.digest.clone());
        let digests = digests.filter(|digest| seen.insert(digest.clone())).collect();
        let imported = Imported { components: digests, attached: attached.len() };
        self.record(components, attached)?;
        Ok(imported)
    }

    /// Makes blobs of what is needed. All are durable before the first one gets its name.
    fn publish(&self, staged: &Staged, needed: &BTreeSet<Digest>) -> Result<(), StoreError> {
        let mut new = Vec::new();
        for digest in needed {
            let (path, size) = staged.get(digest)?;
            if !self.has_blob(digest, *size) {
                new.push((path, self.blob_path(digest)));
            }
        }
        let folder = self.blobs_folder();
        files::sync(&folder, new.iter().map(|(path, _)| path.as_path()))
            .map_err(StoreError::files("writing", &folder))?;
        for (path, blob) in &new {
            std::fs::rename(path, blob).map_err(StoreError::files("writing", blob))?;
        }
        files::sync_folder(&folder).map_err(StoreError::files("writing", &folder))
    }

    /// Reads the whole archive.
    fn stage(&self, archive: &mut impl Read) -> Result<(Staged, Option<Vec<u8>>), StoreError> {
        let mut staged = Staged::default();
        let mut index = None;
        let mut has_layout = false;
        let mut files_left = FILES_MAX;
        while let Some(entry) = tar::next(archive)? {
            files_left =
                files_left.checked_sub(1).ok_or_else(|| refused(format!("it has more than {FILES_MAX} files")))?;
            match entry.name.as_str() {
                _ if entry.is_folder => {
                    if !matches!(entry.name.as_str(), "" | "." | "blobs" | "blobs/sha256") {
                        return Err(refused(format!("it has the folder {:?}", shown(&entry.name))));
                    }
                }
                "oci-layout" if !has_layout => {
                    has_layout = true;
                    let text = document(archive, entry.size, MANIFEST_LENGTH_MAX)?;
                    self.check_layout(&text).map_err(|_| refused("its oci-layout is of another version".to_owned()))?;
                }
                "index.json" if index.is_none() => index = Some(document(archive, entry.size, INDEX_BYTES_MAX)?),
                name => {
                    let digest = name.strip_prefix("blobs/sha256/").map(|hex| Digest::parse(&format!("sha256:{hex}")));
                    let Some(Ok(digest)) = digest else {
                        return Err(refused(format!("it has the file {:?}", shown(name))));
                    };
                    self.stage_blob(archive, digest, entry.size, &mut staged)?;
                }
            }
        }
        if has_layout { Ok((staged, index)) } else { Err(refused("it has no oci-layout".to_owned())) }
    }

    fn stage_blob(
        &self,
        archive: &mut impl Read,
        digest: Digest,
        size: u64,
        staged: &mut Staged,
    ) -> Result<(), StoreError> {
        if staged.blobs.contains_key(&digest) {
            return Err(refused(format!("it has {digest} twice")));
        }
        let path = files::unfinished(&self.blobs_folder());
        let failed = |source| StoreError::files("writing", &path)(source);
        let mut file = files::open_to_write(&path).map_err(failed)?;
        staged.blobs.insert(digest.clone(), (path.clone(), size));
        let found = copy(archive, &mut file, size, &path)?;
        if found != digest {
            return Err(refused(format!("the digest of its file {digest} is {found}")));
        }
        tar::skip(archive, tar::padding(size))
    }
}

impl Staged {
    fn get(&self, digest: &Digest) -> Result<&(PathBuf, u64), StoreError> {
        self.blobs.get(digest).ok_or_else(|| refused(format!("it does not have {digest}, which it names")))
    }

    /// The file of something whose size matches its descriptor.
    fn path_of(&self, entry: &Descriptor) -> Result<&PathBuf, StoreError> {
        match self.get(&entry.digest)? {
            (path, size) if *size == entry.size => Ok(path),
            _ => Err(refused(format!("{} does not have {} bytes", entry.digest, entry.size))),
        }
    }

    /// The bytes of a document, which were verified when they were staged.
    fn document(&self, entry: &Descriptor) -> Result<Vec<u8>, StoreError> {
        let path = self.path_of(entry)?;
        files::read(path, MANIFEST_LENGTH_MAX).map_err(StoreError::files("reading", path))
    }

    /// Classifies an entry of the index: a component, or an attached artifact.
    fn take(&self, entry: &Descriptor, taken: &mut TakenIndex) -> Result<(), StoreError> {
        let wrong = |problem: &String| refused(format!("{}: {problem}", entry.digest));
        self.path_of(entry)?;
        let document = self.read(entry, taken)?;
        let Sorted::Manifest { subject, as_attached, as_component } = document.as_ref() else {
            taken.components.push(named(entry));
            return Ok(());
        };
        // A component may have a subject as well: it stays a component, whether or not its subject
        // is there.
        let said = subject_of(entry);
        let is_component = said.is_none() && as_component.is_ok();
        if is_component {
            taken.components.push(named(entry));
        }
        match (subject.clone().or(said), as_attached) {
            (Some(subject), Ok(of_it)) => {
                let mut of_it = of_it.clone();
                of_it.annotations.insert(SUBJECT.to_owned(), subject.to_string());
                if taken.seen.insert((entry.digest.clone(), subject)) {
                    taken.attached.push(of_it);
                }
            }
            (Some(_), Err(problem)) if !is_component => return Err(wrong(problem)),
            (None, _) => as_component.as_ref().copied().map_err(wrong)?,
            (Some(_), Err(_)) => {}
        }
        Ok(())
    }

    /// A document, which is read once even if many entries name it. Records what it needs.
    fn read(&self, entry: &Descriptor, taken: &mut TakenIndex) -> Result<Rc<Sorted>, StoreError> {
        if let Some(read) = taken.read.get(&entry.digest) {
            return Ok(Rc::clone(read));
        }
        let wrong = |problem: String| refused(format!("{}: {problem}", entry.digest));
        let read = match Document::parse(&self.document(entry)?).map_err(wrong)? {
            Document::Index(index) => {
                let chosen = manifest_of_index(&entry.digest, &index).map_err(|error| wrong(error.to_string()))?;
                self.path_of(chosen)?;
                // Only one level is followed: an index within an index is ignored.
                let of_chosen = match taken.read.get(&chosen.digest) {
                    Some(read) => Rc::clone(read),
                    None => {
                        let manifest = Manifest::parse(&self.document(chosen)?).map_err(wrong)?;
                        let read = Rc::new(self.read_manifest(chosen, &manifest, taken)?);
                        taken.read.insert(chosen.digest.clone(), Rc::clone(&read));
                        read
                    }
                };
                match of_chosen.as_ref() {
                    Sorted::Manifest { as_component, .. } => as_component.clone().map_err(wrong)?,
                    Sorted::Index => return Err(wrong("an index within an index is not followed".to_owned())),
                }
                taken.needed.insert(entry.digest.clone());
                Sorted::Index
            }
            Document::Manifest(manifest) => self.read_manifest(entry, &manifest, taken)?,
        };
        let read = Rc::new(read);
        taken.read.insert(entry.digest.clone(), Rc::clone(&read));
        Ok(read)
    }

    /// Records a manifest and its parts, whose sizes match it.
    fn read_manifest(
        &self,
        entry: &Descriptor,
        manifest: &Manifest,
        taken: &mut TakenIndex,
    ) -> Result<Sorted, StoreError> {
        for part in std::iter::once(entry).chain(manifest.parts()) {
            self.path_of(part)?;
            taken.needed.insert(part.digest.clone());
        }
        let component = component_layer(&entry.digest, manifest);
        let subject = manifest.subject.as_ref().map(|subject| subject.digest.clone());
        let of_it = attached_entry(&entry.digest, manifest, entry.size, &entry.digest);
        let sizes = manifest.layers.iter().map(|layer| layer.size);
        let is_small = sizes.clone().all(|size| size <= ATTACHED_LAYER_BYTES_MAX)
            && manifest.config.size <= CONFIG_BYTES_MAX
            && sizes.fold(entry.size, u64::saturating_add) <= ATTACHED_BYTES_MAX;
        let too_large =
            || format!("it is attached, and a layer has more than {ATTACHED_LAYER_BYTES_MAX} bytes, or all");
        let as_attached = is_small.then_some(of_it).ok_or_else(too_large);
        let as_component = component.map(|_| ()).map_err(|error| error.to_string());
        Ok(Sorted::Manifest { subject, as_attached, as_component })
    }
}

/// The entry of a component with its name in the archive, which is only for display.
fn named(entry: &Descriptor) -> Descriptor {
    let name = entry.annotations.get(NAME).map(String::as_str);
    let name = name.filter(|name| name.len() <= NAME_CHARS_MAX && name.bytes().all(|b| b.is_ascii_graphic()));
    component_entry(&entry.digest, &entry.media_type, entry.size, name)
}

fn document(archive: &mut impl Read, size: u64, max: u64) -> Result<Vec<u8>, StoreError> {
    if size > max {
        return Err(refused(format!("one of its documents has more than {max} bytes")));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    tar::read_exact(archive, &mut bytes)?;
    tar::skip(archive, tar::padding(size))?;
    Ok(bytes)
}

/// Copies contents to a file, and returns their digest.
fn copy(
    archive: &mut impl Read,
    file: &mut impl Write,
    size: u64,
    path: &std::path::Path,
) -> Result<Digest, StoreError> {
    let mut contents = archive.take(size);
    let mut hash = Sha256::new();
    let mut left = size;
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let read = contents.read(&mut piece).map_err(unread)?;
        let read = piece.get(..read).filter(|read| !read.is_empty()).ok_or_else(|| refused("it breaks off".into()))?;
        hash.update(read);
        file.write_all(read).map_err(StoreError::files("writing", path))?;
        left = left.saturating_sub(length(read));
    }
    Ok(crate::finished(hash))
}

/// The beginning of a name, as errors show it.
fn shown(name: &str) -> String {
    const CHARS_SHOWN: usize = 100;
    name.chars().take(CHARS_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> Digest {
        crate::finished(Sha256::new_with_prefix(bytes))
    }

    fn add(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
        archive.extend(tar::header(name, bytes.len() as u64));
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }

    /// Adds a blob, and returns its descriptor.
    fn add_blob(archive: &mut Vec<u8>, media_type: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes).to_string();
        add(archive, &format!("blobs/sha256/{}", digest.trim_start_matches("sha256:")), bytes);
        format!(r#"{{"mediaType":"{media_type}","digest":"{digest}","size":{}}}"#, bytes.len())
    }

    /// An archive of components, with three blobs each.
    fn archive(components: usize) -> Vec<u8> {
        const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
        let mut archive = Vec::new();
        add(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
        let mut entries = Vec::new();
        for number in 0..components {
            let config = format!(r#"{{"number":{number}}}"#);
            let config = add_blob(&mut archive, "application/vnd.wasm.config.v0+json", config.as_bytes());
            let layer = add_blob(&mut archive, "application/wasm", number.to_string().as_bytes());
            let manifest =
                format!(r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{config},"layers":[{layer}]}}"#);
            entries.push(add_blob(&mut archive, MANIFEST, manifest.as_bytes()));
        }
        let index = format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, entries.join(","));
        add(&mut archive, "index.json", index.as_bytes());
        archive.resize(archive.len() + 1024, 0);
        archive
    }

    #[test]
    fn an_import_of_many_blobs_goes_to_the_disk_as_often_as_one_of_few() {
        let syncs_of = |components: usize| {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(&folder.path().join("store")).unwrap();
            let archive = archive(components);
            files::syncs::of(|| {
                let imported = store.import(archive.as_slice()).unwrap();
                assert_eq!(imported.components.len(), components);
            })
        };
        let few = syncs_of(1);
        assert!(few > 1, "contents and names are kept");
        if cfg!(target_os = "linux") {
            assert_eq!(syncs_of(100), few);
        }
    }
}
