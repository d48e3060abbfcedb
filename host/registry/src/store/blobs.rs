//! Blobs of a store, each named by its digest and verified at each read.
use std::io::Read as _;
use std::path::PathBuf;

use toolcell_policy::Digest;

use super::{Store, files};
use crate::document::Descriptor;
use crate::error::StoreError;
use crate::length;

impl Store {
    /// The file of a blob.
    pub(super) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.blobs_folder().join(digest.hex())
    }

    pub(super) fn blobs_folder(&self) -> PathBuf {
        self.root().join("blobs/sha256")
    }

    /// Reads a blob with the digest and size of its descriptor.
    pub(super) fn read_described(&self, descriptor: &Descriptor) -> Result<Vec<u8>, StoreError> {
        self.read_blob(&descriptor.digest, Some(descriptor.size), descriptor.size)
    }

    /// Reads a blob of at most this many bytes, and verifies its digest.
    pub(super) fn read_blob(&self, digest: &Digest, said: Option<u64>, max: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.blob_path(digest);
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing(digest.clone()),
            _ => StoreError::files("reading", &path)(source),
        };
        let file = files::open_own(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length > max || said.is_some_and(|said| said != length) {
            return Err(StoreError::Size { path, said: said.unwrap_or(max) });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        file.take(length).read_to_end(&mut bytes).map_err(failed)?;
        if crate::digest_of(&bytes) == *digest { Ok(bytes) } else { Err(StoreError::Changed { path }) }
    }

    /// True if the blob exists and matches its name.
    pub(crate) fn has_blob(&self, digest: &Digest, size: u64) -> bool {
        files::digest(&self.blob_path(digest)).is_ok_and(|found| found == (digest.clone(), size))
    }

    /// A manifest or index, if it exists and matches its digest.
    pub(crate) fn document(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.read_blob(digest, None, super::MANIFEST_LENGTH_MAX).ok()
    }

    /// Adds a blob. Its bytes are already verified.
    pub(crate) fn add_blob(&self, digest: &Digest, bytes: &[u8]) -> Result<(), StoreError> {
        if self.has_blob(digest, length(bytes)) {
            return Ok(());
        }
        files::write(&self.blob_path(digest), bytes)
    }
}
