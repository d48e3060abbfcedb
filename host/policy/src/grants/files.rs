//! Files and folders: the mounts, and what may be done in them.
//!
//! Mounts may lie within one another in the guest's tree. A path belongs to the mount with the
//! longest path that leads to it, so `"/data/out"` may be writable within a read-only `"/data"`.
//!
//! | guest path | `/data` | `/data/out` |
//! |---|---|---|
//! | `/data/a.txt`, `/data`, `/data/output` | yes | |
//! | `/data/out`, `/data/out/b.txt` | | yes |
//! | `/database` | | |

use std::fmt;
use std::sync::Arc;

use super::Subject;
use super::denial::{Capability, Denial, Reason};
use crate::diagnostic::Span;
use crate::limits::{Spec, spec};
use crate::names::toml_string;
use crate::quantity::{GIB, KIB};
use crate::settings::accessors;
use crate::words::words;

/// The bytes that a writable mount may hold by default: 64 MiB, more than a tool's notes and less
/// than a disk.
pub const QUOTA_BYTES_DEFAULT: u64 = 64 << 20;

/// The files and folders of such a mount.
pub const FILES_DEFAULT: u64 = 1_000;

/// Bytes of a writable mount.
pub(crate) const MOUNT_QUOTA: Spec = spec! {
    "quota" Bytes { min: 1, default: QUOTA_BYTES_DEFAULT, max: 1_024 * GIB },
    "Writing past it fails with the error for \"no space\", and the call goes on."
};

/// Files and folders of a writable mount.
pub(crate) const MOUNT_FILES: Spec = spec! {
    "files" Count { min: 1, default: FILES_DEFAULT, max: 1_000_000 }, "Each takes an inode of the host."
};

/// Bytes of scratch space; it has no default, because its quota is what makes it one.
pub(crate) const SCRATCH: Spec = spec! {
    "scratch" Bytes { min: 4 * KIB, default: 8 << 20, max: 4 * GIB }, "The space is gone after the call."
};

accessors! {
    /// A folder or a file of the host, or space of the call's own, at a path of the guest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Mount {
        /// Its path in the guest's tree: absolute, without `.`, `..` and a slash at the end, but
        /// for `/` itself.
        pub(crate) guest: String => &str,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
        /// The thing that is mounted.
        pub(crate) kind: MountKind => &MountKind,
        pub(crate) subject: Arc<Subject>,
        /// True if the component's mount is writable and a tool's table makes it read-only.
        pub(crate) narrowed: bool,
    }
}

/// The thing that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountKind {
    /// A folder or a file of the host.
    Host {
        /// Its path, relative to the manifest, as it was written.
        path: String,
        /// The access that is granted.
        access: Access,
        /// True makes a folder that is missing; otherwise that is a load error.
        create: bool,
        /// Its quota; `Some` where it can be written.
        quota: Option<Quota>,
    },
    /// Space of the call's own, gone after it.
    Scratch {
        /// Its quota.
        quota: Quota,
    },
}

/// The quota of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Files and folders.
    pub files: u64,
}

words! {
    /// The access to a mount of the host.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Access {
        /// Reading.
        Read "read",
        /// Reading and writing.
        Write "write",
    }
}

words! {
    /// A guest's use of a file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum FileAccess {
        /// Stat, list and read.
        Read "read",
        /// Change a file or a folder.
        Write "write",
        /// Make a file, a folder or a link.
        Create "create",
        /// Remove or rename one.
        Remove "remove",
    }
}

/// The permit for one use of a file: opening a file needs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePermit(FileAccess);

impl FilePermit {
    /// The access that is granted.
    #[must_use]
    pub const fn access(&self) -> FileAccess {
        self.0
    }
}

impl fmt::Display for FileAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Mount {
    /// The access to it.
    #[must_use]
    pub const fn access(&self) -> Access {
        match self.kind {
            MountKind::Host { access, .. } => access,
            MountKind::Scratch { .. } => Access::Write,
        }
    }

    /// Its quota; `None` where it cannot be written.
    #[must_use]
    pub const fn quota(&self) -> Option<Quota> {
        match self.kind {
            MountKind::Host { quota, .. } => quota,
            MountKind::Scratch { quota } => Some(quota),
        }
    }

    /// Decides on a use of a file of the mount; `path` is the guest's name for it, relative to the
    /// mount, and only used for the denial.
    ///
    /// # Errors
    /// [`Denial`] where the mount can only be read.
    pub fn open(&self, want: FileAccess, path: &str) -> Result<FilePermit, Denial> {
        if want == FileAccess::Read || self.access() == Access::Write {
            return Ok(FilePermit(want));
        }
        let denial =
            Denial::new(Capability::Filesystem, format!("{want} {}", self.join(path)), Reason::ReadOnly, &self.subject);
        let guest = &self.guest;
        let component = self.subject.section("filesystem");
        let path = match &self.kind {
            MountKind::Host { path, .. } => path.as_str(),
            MountKind::Scratch { .. } => "",
        };
        Err(if self.narrowed {
            denial.allowed_by(
                &self.subject.narrowed_section("filesystem"),
                format!("{} = {{ access = \"write\" }}", toml_string(guest)),
            )
        } else {
            denial.allowed_by(
                &component,
                format!("{} = {{ path = {}, access = \"write\" }}", toml_string(guest), toml_string(path)),
            )
        })
    }

    /// The rest of a guest path after the mount's path; `None` if it is not below it.
    pub(crate) fn rest_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.guest == "/" {
            return path.strip_prefix('/');
        }
        let rest = path.strip_prefix(self.guest.as_str())?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    fn join(&self, path: &str) -> String {
        let path = path.trim_start_matches("./");
        match (self.guest.as_str(), path) {
            (guest, "" | ".") => guest.to_owned(),
            ("/", path) => format!("/{path}"),
            (guest, path) => format!("{guest}/{path}"),
        }
    }
}

/// The host's folder in a denial without a mount: a person replaces it.
pub const ANY_FOLDER: &str = "FOLDER";

/// The denial of a path outside all mounts.
pub(crate) fn no_mount(subject: &Arc<Subject>, want: FileAccess, path: &str, in_component: bool) -> Denial {
    let denial = Denial::new(Capability::Filesystem, format!("{want} {path}"), Reason::NoRule, subject);
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let folder = if folder.is_empty() { path } else { folder };
    let folder = toml_string(folder);
    let access = if want == FileAccess::Read { "read" } else { "write" };
    if in_component {
        return denial
            .allowed_by(&subject.narrowed_section("filesystem"), format!("{folder} = {{ access = \"{access}\" }}"));
    }
    denial.allowed_by(
        &subject.section("filesystem"),
        format!("{folder} = {{ path = \"{ANY_FOLDER}\", access = \"{access}\" }}"),
    )
}
