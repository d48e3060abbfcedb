//! Reading one file of a folder, on a thread of its own.
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Folder, media_type};

/// Files that are read at once, for all clients together. 16: each takes a thread, and its bytes in
/// memory.
const READS_MAX: usize = 16;

/// Reads that may wait for their turn. Further ones fail at once.
const WAITING_MAX: usize = 1_024;

/// Longest time for a read, including the wait for its turn. A disk that wakes up takes three
/// seconds.
const READ_TIME: Duration = Duration::from_secs(10);

/// Reads files on threads of its own.
pub struct FileReads {
    runtime: Handle,
    places: Arc<Semaphore>,
    /// Waiting and running reads.
    asked: Arc<Semaphore>,
}

/// A file that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// Its media type.
    pub mime_type: String,
    /// Its text, or its bytes if they are not one.
    pub content: Result<String, Vec<u8>>,
}

impl ReadFile {
    /// These bytes, with the known media type, or one guessed from them.
    pub fn of(bytes: Vec<u8>, named: Option<&str>) -> Self {
        let content = match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            Ok(text) => Err(text.into_bytes()),
            Err(error) => Err(error.into_bytes()),
        };
        let mime_type = named.unwrap_or(if content.is_ok() { media_type::TEXT } else { media_type::BYTES });
        Self { mime_type: mime_type.to_owned(), content }
    }
}

/// Why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadProblem {
    /// It does not exist or is unreadable, not a regular file, or outside the folder.
    #[error("there is no such file")]
    Missing,
    /// It is too large.
    #[error("the file has more than {0} bytes (limit \"file_size\")")]
    TooLarge(u64),
    /// The disk does not respond, or too many files are read.
    #[error("the file could not be read in time: try again")]
    Late,
}

impl FileReads {
    pub fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            places: Arc::new(Semaphore::new(READS_MAX)),
            asked: Arc::new(Semaphore::new(READS_MAX + WAITING_MAX)),
        }
    }

    /// Takes every place, those for waiting included.
    #[cfg(test)]
    pub(super) fn fill(&self) -> tokio::sync::OwnedSemaphorePermit {
        let all = u32::try_from(READS_MAX + WAITING_MAX).unwrap();
        Arc::clone(&self.asked).try_acquire_many_owned(all).unwrap()
    }

    /// Reads the file at this path of a folder.
    ///
    /// # Errors
    /// [`ReadProblem`].
    pub async fn read(&self, folder: &Arc<Folder>, path: String) -> Result<ReadFile, ReadProblem> {
        let asked = Arc::clone(&self.asked).try_acquire_owned().map_err(|_full| ReadProblem::Late)?;
        let places = Arc::clone(&self.places);
        let folder = Arc::clone(folder);
        let reading = async move {
            let place = places.acquire_owned().await.map_err(|_closed| ReadProblem::Late)?;
            // A hanging thread keeps its permit, so their number is bounded.
            let reading = tokio::task::spawn_blocking(move || {
                let _place = (place, asked);
                folder.read(&path)
            });
            reading.await.map_err(|_ended| ReadProblem::Late)?
        };
        let within = self.runtime.spawn(async move { timeout(READ_TIME, reading).await });
        within.await.ok().and_then(Result::ok).unwrap_or(Err(ReadProblem::Late))
    }
}

impl Folder {
    /// Reads the file at this path, which must lie within the folder after following links.
    pub(super) fn read(&self, path: &str) -> Result<ReadFile, ReadProblem> {
        let bytes = self.bytes_of(path).map_err(|_| ReadProblem::Missing)?;
        let bytes = bytes.ok_or(ReadProblem::TooLarge(self.file_bytes_max))?;
        Ok(ReadFile::of(bytes, self.mime_type.as_deref().or_else(|| media_type::of_name(path))))
    }

    /// The bytes of a regular file; `None` if there are too many.
    fn bytes_of(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let dir = Dir::open_ambient_dir(&self.root, ambient_authority())?;
        // Checked before it is opened: opening a device or a pipe may have effects.
        if !dir.metadata(path)?.is_file() {
            return Err(missing());
        }
        let mut options = OpenOptions::new();
        // It may have become a pipe, and opening one must not wait.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
        let file = dir.open_with(path, &options)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || self.is_state(&file) || !self.is_served(&file) {
            return Err(missing());
        }
        if metadata.len() > self.file_bytes_max {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(self.file_bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= self.file_bytes_max).then_some(bytes))
    }

    /// True for a file whose real path within the folder has only served names. Checked on the open
    /// file, since links may change.
    fn is_served(&self, file: &File) -> bool {
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let Some((root, opened)) = self.root.canonicalize().ok().zip(opened.ok()) else { return false };
        opened.strip_prefix(&root).is_ok_and(|path| path.to_str().is_some_and(super::is_served))
    }

    /// True for a file in the folder of tools' state. Checked on the open file, since links may
    /// change.
    fn is_state(&self, file: &File) -> bool {
        let (Ok(root), Ok(state)) = (self.root.canonicalize(), self.state.canonicalize()) else { return false };
        // If neither folder contains the other, no file is in both.
        if !root.starts_with(&state) && !state.starts_with(&root) {
            return false;
        }
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        opened.map_or(true, |opened| opened.starts_with(&state))
    }
}
