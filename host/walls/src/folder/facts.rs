//! The facts about a file or folder that need no opening for more: kind, size, links, times,
//! identity.
use cap_std::fs::{Metadata, MetadataExt};
use rustix::fs::{FileType, RawMode};

/// A device and an inode: two names with equal identities are one file.
pub type Identity = (u64, u64);

/// A time of a file, since 1970.
#[derive(Clone, Copy, Debug)]
pub struct FileTime {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// The rest.
    pub nanoseconds: i64,
}

/// The operating system's facts about a file or folder.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its kind.
    pub kind: FileType,
    /// In bytes: the whole length of a sparse file, the length of a link's text.
    pub size: u64,
    /// The number of its names.
    pub links: u64,
    /// Its device and inode.
    pub identity: Identity,
    /// The time of the last access.
    pub accessed: FileTime,
    /// The time of the last change of its content.
    pub modified: FileTime,
    /// The time of the last change of its facts.
    pub changed: FileTime,
}

impl From<&Metadata> for Facts {
    fn from(data: &Metadata) -> Self {
        Self {
            kind: FileType::from_raw_mode(data.mode() as RawMode),
            size: data.size(),
            links: data.nlink(),
            identity: (data.dev(), data.ino()),
            accessed: FileTime { seconds: data.atime(), nanoseconds: data.atime_nsec() },
            modified: FileTime { seconds: data.mtime(), nanoseconds: data.mtime_nsec() },
            changed: FileTime { seconds: data.ctime(), nanoseconds: data.ctime_nsec() },
        }
    }
}

impl Facts {
    /// Of an open file.
    ///
    /// # Errors
    /// An error of the system.
    pub fn of(file: &std::fs::File) -> std::io::Result<Self> {
        Metadata::from_file(file).map(|data| Self::from(&data))
    }

    /// Bytes that count towards a quota: those of regular files, and the texts of links.
    #[must_use]
    pub fn charged_bytes(&self) -> u64 {
        match self.kind {
            FileType::RegularFile | FileType::Symlink => self.size,
            _ => 0,
        }
    }

    /// True of a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// True of a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// True of a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }
}
