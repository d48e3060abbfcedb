//! The rights that walls leave a process.

use std::os::fd::BorrowedFd;

use super::wall::Wall;

/// Rights that the kernel leaves a process.
#[derive(Clone, Copy, Debug)]
pub struct Rights<'a> {
    /// The socket to the host. The process at its other end must be this one's parent.
    pub link: Option<BorrowedFd<'a>>,
    /// Folders and files that may be opened.
    pub folders: &'a [Folder<'a>],
    /// Bytes of memory that may become writable after the seal, beyond what was until then.
    pub memory_bytes_max: u64,
    /// Threads that the process may have. `None`: no thread starts after the seal.
    ///
    /// The kernel does not count root's threads, nor before Linux 5.14 those of one process
    /// separately. There only `None` bounds them.
    pub threads_max: Option<u64>,
    /// Descriptors that may be open.
    pub files_max: u64,
    /// Bytes that a file may grow to by a write of this process; `None` if the kernel should not
    /// bound it.
    pub file_bytes_max: Option<u64>,
    /// Walls to leave out, so that a test can see what the others enforce alone.
    pub without: &'a [Wall],
}

/// A folder with everything beneath it, or a file.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    /// The folder or the file. A descriptor opened with `O_PATH` is enough.
    pub descriptor: BorrowedFd<'a>,
    /// The use that is granted.
    pub access: Access,
}

/// A use of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading files and listing folders.
    Read,
    /// Reading, and making, changing, renaming and removing files, folders and links.
    Write,
}
