//! The store: an OCI image layout on disk that processes share. Must not hold: registries, or who
//! is trusted.
//!
//! | file | holds |
//! |---|---|
//! | `oci-layout`, `index.json`, `blobs/sha256/…` | the image layout (image specification 1.1) |
//! | `index.lock` | locked while `index.json` is changed |
//! | `pulling.lock` | locked shared by adding, exclusively by removing |
//! | `partial/` | unfinished downloads, each locked by the process that continues it |
//!
//! Everything is read by its digest and verified at each read. The only part of a path that comes
//! from files of the store is 64 hexadecimal digits.
mod blobs;
mod export;
mod files;
mod gc;
mod import;
mod index;
mod partial;
mod tar;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toolcell_policy::Digest;

pub(crate) use files::{Lock, open_file};
pub use gc::Removed;
pub use import::{IMPORT_BYTES_MAX, Imported};
pub(crate) use partial::{Finished, Partial};
pub use verify::Fault;

use crate::document::{
    CONFIG_BYTES_MAX, Descriptor, Document, LAYOUT_VERSION, MANIFEST_BYTES_MAX, Manifest, component_layer,
    manifest_of_index,
};
use crate::error::StoreError;
use crate::length;
use index::{NAME, REPOSITORY, SUBJECT, is_component, subject_of};

/// Largest component that is pulled or read, in bytes: no larger one is ever loaded, and an
/// interpreter with its libraries has some ten megabytes.
pub const COMPONENT_BYTES_MAX: u64 = 128 << 20;

/// Largest layer of an attached artifact, in bytes: a list of parts has hundreds of kilobytes.
pub const ATTACHED_LAYER_BYTES_MAX: u64 = 8 << 20;

/// Most bytes of all attached artifacts of a component, with their manifests.
pub const ATTACHED_BYTES_MAX: u64 = 64 << 20;

/// Most entries of a store: components under each of their names, and what is attached to them.
pub const STORE_ENTRIES_MAX: usize = 10_000;

/// Largest `oci-layout`, in bytes; it has 30.
const LAYOUT_BYTES_MAX: u64 = 4 << 10;

/// Largest manifest as a length of files.
const MANIFEST_LENGTH_MAX: u64 = 4 << 20;

/// A store of components. Cheap to clone. Nothing is cached: each method reads the disk.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// A verified component of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredComponent {
    /// Digest of its manifest. Differs from the requested digest if that is an index.
    pub manifest: Digest,
    /// Digest of its bytes.
    pub layer: Digest,
    /// The component.
    pub bytes: Vec<u8>,
    /// Its manifest, as it was pushed.
    pub manifest_bytes: Vec<u8>,
    /// The requested index, if it was one.
    pub index_bytes: Option<Vec<u8>>,
    /// Its config, as it was pushed.
    pub config: Vec<u8>,
    /// Annotations of its manifest: claims of the publisher.
    pub annotations: BTreeMap<String, String>,
}

/// An artifact that is attached to a component: a signature, an attestation, a list of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Digest of its manifest.
    pub digest: Digest,
    /// Digest of the manifest or index that it is attached to.
    pub subject: Digest,
    /// Its type: that of its manifest, whatever an index says.
    pub artifact_type: String,
    /// Its manifest, as it was pushed.
    pub manifest_bytes: Vec<u8>,
    /// Its verified layers.
    pub layers: Vec<StoredLayer>,
}

/// A layer of an attached artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLayer {
    /// Its media type.
    pub media_type: String,
    /// Annotations of its descriptor.
    pub annotations: BTreeMap<String, String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A component in the list of a store. Its bytes were not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Digest of its manifest or index.
    pub digest: Digest,
    /// Names under which it was pulled, `registry/repository`.
    pub names: Vec<String>,
    /// Size of the component in bytes, where its manifest can be read.
    pub bytes: Option<u64>,
    /// Number of artifacts that are attached to it.
    pub attached: usize,
}

/// A manifest that was found by its own digest, or by that of its index.
struct FoundManifest {
    digest: Digest,
    bytes: Vec<u8>,
    manifest: Manifest,
    index_bytes: Option<Vec<u8>>,
}

impl Store {
    /// Opens a store. A folder that is empty or does not exist becomes one.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] where it holds something else, [`StoreError::Files`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self { root: path.to_owned() };
        let layout = path.join("oci-layout");
        match files::read(&layout, LAYOUT_BYTES_MAX) {
            Ok(text) => store.check_layout(&text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => store.create(&layout)?,
            Err(error) => return Err(StoreError::files("reading", layout)(error)),
        }
        Ok(store)
    }

    fn check_layout(&self, text: &[u8]) -> Result<(), StoreError> {
        let layout = serde_json::from_slice::<BTreeMap<String, serde_json::Value>>(text).ok();
        let version = layout.as_ref().and_then(|layout| layout.get("imageLayoutVersion")?.as_str());
        if version == Some(LAYOUT_VERSION) {
            return Ok(());
        }
        let problem = format!("its file \"oci-layout\" is not of version {LAYOUT_VERSION}");
        Err(StoreError::NotAStore { path: self.root.clone(), problem })
    }

    fn create(&self, layout: &Path) -> Result<(), StoreError> {
        let failed = |source| StoreError::files("making", &self.root)(source);
        std::fs::create_dir_all(&self.root).map_err(failed)?;
        for entry in std::fs::read_dir(&self.root).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            // Another process may be creating the store at the same time.
            if !name.to_string_lossy().starts_with(files::UNFINISHED) && name != "oci-layout" {
                // It may have appeared since the check above.
                if layout.exists() {
                    return Ok(());
                }
                let problem = "it has other files".to_owned();
                return Err(StoreError::NotAStore { path: self.root.clone(), problem });
            }
        }
        files::write(layout, &layout_text())?;
        self.prepare()
    }

    /// Creates the folders for writing.
    fn prepare(&self) -> Result<(), StoreError> {
        for folder in [self.blobs_folder(), self.partial_folder()] {
            std::fs::create_dir_all(&folder).map_err(StoreError::files("making", folder))?;
        }
        Ok(())
    }

    /// The folder of the store.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The lock that keeps others from removing what is being added.
    pub(crate) fn adding(&self) -> Result<Lock, StoreError> {
        files::lock(&self.pulling_lock(), files::LockKind::Shared, "removes components from the store")
    }

    fn pulling_lock(&self) -> PathBuf {
        self.root.join("pulling.lock")
    }

    /// A component by the digest of its manifest, or of an index with one component.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::ComponentTooLarge`] above [`COMPONENT_BYTES_MAX`],
    /// and [`StoreError::Changed`] or [`StoreError::Size`] if bytes do not match their digest.
    pub fn component(&self, digest: &Digest) -> Result<StoredComponent, StoreError> {
        self.component_within(digest, COMPONENT_BYTES_MAX)
    }

    /// A component of at most `bytes_max` bytes. A larger one is not read.
    ///
    /// # Errors
    /// Those of [`Store::component`].
    pub fn component_within(&self, digest: &Digest, bytes_max: u64) -> Result<StoredComponent, StoreError> {
        let found = self.find(digest)?;
        let layer = component_layer(&found.digest, &found.manifest).map_err(|error| not_understood(digest, error))?;
        if layer.size > bytes_max {
            let digest = layer.digest.clone();
            let bytes = layer.size;
            return Err(StoreError::ComponentTooLarge { digest, bytes, max: bytes_max });
        }
        if found.manifest.config.size > CONFIG_BYTES_MAX {
            return Err(not_understood(digest, format!("its config has more than {CONFIG_BYTES_MAX} bytes")));
        }
        let bytes = self.read_described(layer)?;
        let config = self.read_described(&found.manifest.config)?;
        Ok(StoredComponent {
            layer: layer.digest.clone(),
            bytes,
            config,
            annotations: found.manifest.annotations,
            manifest: found.digest,
            manifest_bytes: found.bytes,
            index_bytes: found.index_bytes,
        })
    }

    /// The blob of this digest, of at most `bytes_max` bytes: only a component, without its
    /// manifest.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Size`] where there are more, [`StoreError::Changed`]
    /// where the bytes are not those of their digest.
    pub fn bytes_of(&self, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, StoreError> {
        self.read_blob(digest, None, bytes_max)
    }

    /// Artifacts that are attached to a component, and to its index if the digest is that of one.
    ///
    /// Those that were pulled from the named repository come first, and then those that were
    /// imported, the newest first. Others are left out: anyone who copies a component could attach
    /// so many that they crowd out those of its own repository. [`ATTACHED_BYTES_MAX`] holds for
    /// all with their manifests; one that is too large is left out.
    ///
    /// # Errors
    /// Those of [`Store::component`], and [`StoreError::Index`].
    pub fn attached(&self, digest: &Digest, repository: &str) -> Result<Vec<Attached>, StoreError> {
        let subjects = [digest.clone(), self.find(digest)?.digest];
        let entries = self.entries()?;
        let from = |entry: &Descriptor| entry.annotations.get(REPOSITORY).cloned();
        let own = entries.iter().filter(|entry| from(entry).as_deref() == Some(repository));
        let imported = entries.iter().filter(|entry| from(entry).is_none());
        let mut attached = Vec::new();
        let mut total = 0_u64;
        let mut seen = BTreeSet::new();
        for entry in own.chain(imported) {
            let Some(subject) = subject_of(entry).filter(|subject| subjects.contains(subject)) else { continue };
            if seen.insert((&entry.digest, subject.clone())) {
                attached.extend(self.read_attached(&entry.digest, subject, &mut total)?);
            }
        }
        Ok(attached)
    }

    /// An attached artifact, if it fits next to the `total` bytes of others. One that is too large
    /// must not hide those after it.
    fn read_attached(&self, digest: &Digest, subject: Digest, total: &mut u64) -> Result<Option<Attached>, StoreError> {
        let manifest_bytes = self.read_blob(digest, None, MANIFEST_LENGTH_MAX)?;
        let manifest = Manifest::parse(&manifest_bytes).map_err(|problem| not_understood(digest, problem))?;
        let is_small = manifest.layers.iter().all(|layer| layer.size <= ATTACHED_LAYER_BYTES_MAX);
        let of_manifest = length(&manifest_bytes);
        let sizes = manifest.layers.iter().map(|layer| layer.size);
        let with_it = sizes.fold(total.saturating_add(of_manifest), u64::saturating_add);
        if !is_small || with_it > ATTACHED_BYTES_MAX {
            return Ok(None);
        }
        *total = with_it;
        let artifact_type = manifest.kind().to_owned();
        let layers = manifest.layers.into_iter().map(|layer| {
            let bytes = self.read_described(&layer)?;
            Ok(StoredLayer { media_type: layer.media_type, annotations: layer.annotations, bytes })
        });
        let layers = layers.collect::<Result<_, StoreError>>()?;
        Ok(Some(Attached { digest: digest.clone(), subject, artifact_type, manifest_bytes, layers }))
    }

    /// All components, by digest. Only their manifests are read.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::Files`].
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let entries = self.entries()?;
        let mut names = BTreeMap::<&Digest, Vec<String>>::new();
        for entry in entries.iter().filter(|entry| is_component(entry)) {
            names.entry(&entry.digest).or_default().extend(entry.annotations.get(NAME).cloned());
        }
        let mut attached = BTreeMap::<Digest, usize>::new();
        // One artifact may come from several repositories.
        let each: BTreeSet<_> = entries.iter().filter_map(|entry| Some((subject_of(entry)?, &entry.digest))).collect();
        for (subject, _) in each {
            let count = attached.entry(subject).or_default();
            *count = count.saturating_add(1);
        }
        let listed = names.into_iter().map(|(digest, names)| {
            let found = self.find(digest).ok();
            let layer = found.as_ref().and_then(|found| component_layer(&found.digest, &found.manifest).ok());
            let count = |digest: &Digest| attached.get(digest).copied().unwrap_or_default();
            let other = found.as_ref().map(|found| &found.digest).filter(|other| *other != digest);
            let attached = count(digest).saturating_add(other.map(count).unwrap_or_default());
            Listed { digest: digest.clone(), names, bytes: layer.map(|layer| layer.size), attached }
        });
        Ok(listed.collect())
    }

    /// The manifest of a component.
    fn find(&self, digest: &Digest) -> Result<FoundManifest, StoreError> {
        let bytes = self.read_blob(digest, None, MANIFEST_LENGTH_MAX)?;
        let document = Document::parse(&bytes).map_err(|problem| not_understood(digest, problem))?;
        let index = match document {
            Document::Manifest(manifest) => {
                return Ok(FoundManifest { digest: digest.clone(), bytes, manifest: *manifest, index_bytes: None });
            }
            Document::Index(index) => index,
        };
        let entry = manifest_of_index(digest, &index).map_err(|error| not_understood(digest, error))?;
        let within = u64::try_from(MANIFEST_BYTES_MAX).unwrap_or(u64::MAX);
        let manifest_bytes = self.read_blob(&entry.digest, Some(entry.size), within)?;
        let manifest = Manifest::parse(&manifest_bytes).map_err(|problem| not_understood(&entry.digest, problem))?;
        Ok(FoundManifest { digest: entry.digest.clone(), bytes: manifest_bytes, manifest, index_bytes: Some(bytes) })
    }
}

/// The text of `oci-layout`.
fn layout_text() -> Vec<u8> {
    format!("{{\"imageLayoutVersion\":\"{LAYOUT_VERSION}\"}}").into_bytes()
}

/// The entry of a component under a name.
pub(crate) fn component_entry(digest: &Digest, media_type: &str, size: u64, name: Option<&str>) -> Descriptor {
    let mut entry = Descriptor::named(digest, media_type, size);
    entry.annotations.extend(name.map(|name| (NAME.to_owned(), name.to_owned())));
    entry
}

/// The entry of an artifact that is attached to something.
pub(crate) fn attached_entry(digest: &Digest, manifest: &Manifest, size: u64, subject: &Digest) -> Descriptor {
    let media_type = manifest.media_type.as_deref().unwrap_or(crate::document::OCI_MANIFEST);
    let mut entry = Descriptor::named(digest, media_type, size);
    entry.artifact_type = Some(manifest.kind().to_owned());
    entry.annotations.insert(SUBJECT.to_owned(), subject.to_string());
    entry
}

/// The entry with the repository that it was pulled from.
pub(crate) fn of_repository(mut entry: Descriptor, name: &str) -> Descriptor {
    entry.annotations.insert(REPOSITORY.to_owned(), name.to_owned());
    entry
}

fn not_understood(digest: &Digest, problem: impl ToString) -> StoreError {
    StoreError::Document { digest: digest.clone(), problem: problem.to_string() }
}
