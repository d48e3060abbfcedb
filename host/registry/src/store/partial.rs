//! Unfinished downloads, which can be resumed.
//!
//! One process at a time writes the file of a digest, under the file's lock.
use std::fs::{File, TryLockError};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use toolcell_policy::Digest;

use super::{Store, files};
use crate::error::StoreError;
use crate::length;

/// A file that grows until it becomes a blob.
pub(crate) struct Partial {
    file: File,
    path: PathBuf,
    blob: PathBuf,
    hash: Sha256,
    bytes: u64,
}

/// The end of a download.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// It is a blob now.
    Blob,
    /// Its digest did not match, so it was truncated.
    Wrong(Digest),
}

impl Store {
    /// The unfinished download of a digest; `None` while another process continues it.
    pub(crate) fn partial(&self, digest: &Digest) -> Result<Option<Partial>, StoreError> {
        self.prepare()?;
        let path = self.partial_folder().join(digest.hex());
        let failed = |source| StoreError::files("opening", &path)(source);
        let mut file = files::open_to_write(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Another process may have made it a blob, or removed it, before we got the lock.
        let own = file.metadata().map_err(failed)?;
        let is_same =
            std::fs::symlink_metadata(&path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
        if !is_same {
            return Ok(None);
        }
        let (hash, bytes) = files::hash(&mut file).map_err(failed)?;
        Ok(Some(Partial { file, blob: self.blob_path(digest), path, hash, bytes }))
    }

    pub(super) fn partial_folder(&self) -> PathBuf {
        self.root().join("partial")
    }
}

impl Partial {
    /// Bytes so far.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(StoreError::files("writing", &self.path))?;
        self.hash.update(bytes);
        self.bytes = self.bytes.saturating_add(length(bytes));
        Ok(())
    }

    /// Removes the file, which nobody needs. One that stays is only litter, which the next `gc`
    /// takes.
    pub(crate) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Truncates it, to start again.
    pub(crate) fn restart(&mut self) -> Result<(), StoreError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(StoreError::files("writing", &self.path))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    /// Makes it a blob, if its digest matches.
    pub(crate) fn finish(&mut self, digest: &Digest) -> Result<Finished, StoreError> {
        let found = crate::finished(self.hash.clone());
        if found != *digest {
            self.restart()?;
            return Ok(Finished::Wrong(found));
        }
        let done = files::sync_file(&self.file).and_then(|()| files::publish(&self.path, &self.blob));
        done.map_err(StoreError::files("writing", &self.blob))?;
        Ok(Finished::Blob)
    }
}
